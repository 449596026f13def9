//! Our side of the tests in `interop/` that need more than the command line.
#![forbid(unsafe_code)]

mod cases;
mod programs;
mod runtime;
mod runtime_client;
mod session;

const USAGE: &str = "\
usage: agui-interop cases                  for node/differential.mjs
       agui-interop session URL TOOL...    for node/conversation.test.mjs and pydantic.test.mjs
       agui-interop programs FROM COUNT    for node/emitter.test.mjs
       agui-interop runtime AGENT_URL      for node/copilotkit-runtime.test.mjs
       agui-interop runtime-client URL TRANSPORT
                                           for node/copilotkit-client.test.mjs";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["cases"] => cases::play(),
        ["session", url, ref tools @ ..] => session::play(url, tools).await,
        ["programs", from, seeds] => programs::write(from.parse()?, seeds.parse()?).await,
        ["runtime-client", url, transport] => runtime_client::play(url, transport).await,
        ["runtime", agent] => runtime::serve(agent).await,
        _ => anyhow::bail!(USAGE),
    }
}
