//! Who may ask, and which agent answers.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agui_agent::{AgentExt, AgentResult, Run};
use agui_server::{AgentService, Asked, Refusal, bearer, bearer_secret, codes};
use agui_types::AgentCapabilities;
use bytes::Bytes;
use common::{INPUT, body_text, events, post};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{Empty, Full};
use serde_json::{Value, json};
use tower::ServiceExt;

#[derive(Clone)]
struct User(String);

fn asks(path: &str, token: Option<&str>) -> Request<Full<Bytes>> {
    let mut request = post(INPUT);
    *request.uri_mut() = path.parse().unwrap();
    if let Some(token) = token {
        let value = format!("Bearer {token}").parse().unwrap();
        request.headers_mut().insert("authorization", value);
    }
    request
}

async fn refused(service: &AgentService, request: Request<Full<Bytes>>) -> (u16, Value) {
    let response = service.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body: Value = serde_json::from_str(&body_text(response).await).unwrap();
    (status, body["error"]["code"].clone())
}

/// Two agents by path, for those who say who they are.
fn service() -> AgentService {
    AgentService::choosing(async |head: Arc<http::request::Parts>| {
        let User(name) = head.extensions.get::<User>().expect("it is authorised first").clone();
        let greeting = match head.uri.path() {
            "/hello" => "Hello",
            "/bye" => "Goodbye",
            path => {
                let message = format!("there is no agent at {path}");
                return Err(Refusal::new(StatusCode::NOT_FOUND, "UNKNOWN_AGENT", message));
            }
        };
        let agent = move |run: Run| {
            let text = format!("{greeting}, {name}!");
            async move {
                run.say(text).await?;
                Ok(())
            }
        };
        Ok(agent.with_capabilities(AgentCapabilities::new()))
    })
    .authorize(async |head: Arc<http::request::Parts>| match bearer(&head) {
        Some("eve") => Err(Refusal::forbidden()),
        Some(name) => Ok(User(name.to_owned())),
        None => Err(Refusal::unauthorized(HeaderValue::from_static("Bearer realm=\"agents\""))),
    })
}

#[tokio::test]
async fn each_request_gets_the_agent_that_is_chosen_for_it() {
    for (path, name, said) in [("/hello", "Ann", "Hello, Ann!"), ("/bye", "Ben", "Goodbye, Ben!")] {
        let response = service().oneshot(asks(path, Some(name))).await.unwrap();
        assert_eq!(events(&body_text(response).await)[2]["delta"], said);
    }
    let unknown = refused(&service(), asks("/nowhere", Some("Ann"))).await;
    assert_eq!(unknown, (404, json!("UNKNOWN_AGENT")));
}

#[tokio::test]
async fn t19_nobody_is_let_in_whom_the_hook_does_not_let_in() {
    let unauthorized = (401, json!(codes::UNAUTHORIZED));
    assert_eq!(refused(&service(), asks("/hello", None)).await, unauthorized);
    // Whatever else is wrong with the request, that is what is said.
    let get = Request::get("/nowhere").body(Full::default()).unwrap();
    assert_eq!(refused(&service(), get).await, unauthorized);
    assert_eq!(
        refused(&service(), asks("/hello", Some("eve"))).await,
        (403, json!(codes::FORBIDDEN))
    );
    let response = service().oneshot(asks("/hello", None)).await.unwrap();
    assert_eq!(response.headers()["www-authenticate"], "Bearer realm=\"agents\"");

    // The declaration as well.
    let capabilities = |token: Option<&str>| {
        let mut request = Request::get("/hello").body(Empty::<Bytes>::new()).unwrap();
        if let Some(token) = token {
            let value = format!("bearer {token}").parse().unwrap();
            request.headers_mut().insert("authorization", value);
        }
        service().capabilities().oneshot(request)
    };
    assert_eq!(capabilities(None).await.unwrap().status(), 401);
    assert_eq!(capabilities(Some("Ann")).await.unwrap().status(), 200);
}

#[tokio::test]
async fn the_agent_finds_out_who_asks() {
    let agent = async |run: Run| {
        let User(name) = run.context().extensions.get::<User>().expect("a user").clone();
        run.say(name).await?;
        Ok(())
    };
    let service = AgentService::new(agent).authorize(async |_| Ok(User("Ann".into())));
    let response = service.oneshot(asks("/", None)).await.unwrap();
    assert_eq!(events(&body_text(response).await)[2]["delta"], "Ann");
}

#[tokio::test]
async fn a_hook_that_panics_lets_nobody_in() {
    async fn greeter(run: Run) -> AgentResult {
        run.say("Hello!").await?;
        Ok(())
    }
    let internal = (500, json!(codes::INTERNAL_ERROR));
    let early = AgentService::new(greeter)
        .authorize(|_| -> std::future::Ready<Result<(), Refusal>> { panic!("early") });
    assert_eq!(refused(&early, asks("/", None)).await, internal);
    let late =
        AgentService::new(greeter).authorize(async |_| -> Result<(), Refusal> { panic!("late") });
    assert_eq!(refused(&late, asks("/", None)).await, internal);

    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let choosing = AgentService::choosing(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { if true { panic!("no agent") } else { Ok(greeter) } }
    });
    assert_eq!(refused(&choosing, asks("/", None)).await, internal);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_shared_secret_lets_in_whoever_knows_it() {
    let service =
        |secret: &str| AgentService::new(async |_: Run| Ok(())).authorize(bearer_secret(secret));
    let response = service("s3cret").oneshot(asks("/", Some("s3cret"))).await.unwrap();
    assert_eq!(response.status(), 200);
    let unauthorized = (401, json!(codes::UNAUTHORIZED));
    for (secret, token) in [
        ("s3cret", Some("s3cre")),
        ("s3cret", Some("s3creT")),
        ("s3cret", Some("s3cret s3cret")),
        ("s3cret", None),
        ("", Some("")),
        ("", None),
    ] {
        assert_eq!(refused(&service(secret), asks("/", token)).await, unauthorized, "{token:?}");
    }
    // Two credentials are none, and so is another scheme.
    let mut twice = asks("/", Some("s3cret"));
    twice.headers_mut().append("authorization", HeaderValue::from_static("Bearer s3cret"));
    assert_eq!(refused(&service("s3cret"), twice).await, unauthorized);
    let mut basic = asks("/", None);
    basic.headers_mut().insert("authorization", HeaderValue::from_static("Basic s3cret"));
    assert_eq!(refused(&service("s3cret"), basic).await, unauthorized);
}

/// What serves is shared by the tasks of a server; what is answered with goes to one of them.
#[test]
fn what_serves_may_move_between_threads() {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    fn sent<T: Send + 'static>() {}
    shared::<AgentService>();
    shared::<agui_server::CapabilitiesService>();
    sent::<agui_server::ResponseBody>();
    sent::<Refusal>();
    fn is_sent<T: Send + 'static>(_: &T) {}
    is_sent(&service().oneshot(post(INPUT)));
}

#[tokio::test]
async fn a_run_is_permitted_once_its_input_is_known() {
    let service = service().permit(|head: Arc<http::request::Parts>, asked| {
        let User(name) = head.extensions.get::<User>().expect("it is authorised first").clone();
        let messages = match asked {
            Asked::Run(input) => Some(input.messages.len()),
            _ => None,
        };
        async move {
            match (name.as_str(), messages) {
                ("Ben", _) => Err(Refusal::forbidden()),
                ("Cyd", Some(messages)) => panic!("{messages}"),
                _ => Ok(()),
            }
        }
    });
    let response = service.clone().oneshot(asks("/hello", Some("Ann"))).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(
        refused(&service, asks("/hello", Some("Ben"))).await,
        (403, json!(codes::FORBIDDEN))
    );
    let panicked = refused(&service, asks("/hello", Some("Cyd"))).await;
    assert_eq!(panicked, (500, json!(codes::INTERNAL_ERROR)));
    // What is no input is told so first.
    let mut broken = asks("/hello", Some("Ben"));
    *broken.body_mut() = Full::new(Bytes::from("{"));
    assert_eq!(refused(&service, broken).await, (400, json!(codes::INVALID_JSON)));

    let look = async |name: &str| {
        let mut request = asks("/hello", Some(name)).map(|_| Empty::<Bytes>::new());
        *request.method_mut() = http::Method::GET;
        service.capabilities().oneshot(request).await.unwrap().status()
    };
    assert_eq!((look("Ann").await, look("Ben").await), (StatusCode::OK, StatusCode::FORBIDDEN));
}
