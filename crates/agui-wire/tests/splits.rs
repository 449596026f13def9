//! Bodies cut at random, as often as `AGUI_SPLITS` says. Ten million take some minutes:
//!
//! ```sh
//! AGUI_SPLITS=10000000 cargo test -p agui-wire --test splits -- --nocapture
//! ```

use std::path::Path;

use agui_wire::fuzzing::{Seen, framed, see};
use agui_wire::{Limits, WireForm};

/// T-14, T-15, T-28: where the reads of a body begin and end changes nothing: no event, no warning,
/// no place, no failure.
#[test]
#[allow(clippy::print_stdout)]
fn t14_t15_t28_no_split_makes_a_difference() {
    let splits = std::env::var("AGUI_SPLITS").map_or(20_000, |it| it.parse().expect("a number"));
    let bodies = bodies();
    let mut chance = Chance(1);
    for split in 0..splits {
        let body = &bodies[chance.below(bodies.len())];
        let (limits, whole) = &body.wholes[chance.below(body.wholes.len())];
        let reads = cut(&body.bytes, &mut chance);
        let seen = see(body.form, *limits, reads.iter().copied());
        let sizes = || reads.iter().map(|read| read.len()).collect::<Vec<_>>();
        assert_eq!(seen, *whole, "split {split}: {} in reads of {:?}", body.name, sizes());
    }
    println!("{splits} random splits of {} bodies, and no difference", bodies.len());
}

struct Body {
    name: String,
    form: WireForm,
    bytes: Vec<u8>,
    /// What it comes to in one piece, by limits.
    wholes: Vec<(Limits, Seen)>,
}

impl Body {
    fn new(name: impl Into<String>, form: WireForm, bytes: Vec<u8>) -> Self {
        let tight = Limits::default().with_frame_bytes(bytes.len() / 4).with_list_items(2);
        let whole = |limits| (limits, see(form, limits, [&bytes[..]]));
        let wholes = [Limits::default(), tight].map(whole).into();
        Self { name: name.into(), form, bytes, wholes }
    }
}

/// The seeds of the fuzz targets, those of protobuf also behind one another.
fn bodies() -> Vec<Body> {
    let mut bodies = Vec::new();
    for (name, bytes) in seeds("sse_decode") {
        bodies.push(Body::new(name, WireForm::Sse, bytes));
    }
    let mut joined = Vec::new();
    for (name, bytes) in seeds("proto_decode") {
        let frame = framed(&bytes);
        joined.extend(&frame);
        bodies.push(Body::new(name, WireForm::Proto, frame));
    }
    bodies.push(Body::new("all of protobuf", WireForm::Proto, joined));
    for (name, bytes) in seeds("seam_split") {
        // Which form, in the first of five bytes, and how many behind those say where to cut.
        let form = if bytes[0] & 1 == 0 { WireForm::Sse } else { WireForm::Proto };
        let at = (5 + usize::from(bytes[3])).min(bytes.len());
        bodies.push(Body::new(name, form, bytes[at..].to_vec()));
    }
    assert!(bodies.len() > 50, "{}", bodies.len());
    let failing = |body: &&Body| body.wholes.iter().any(|(_, seen)| seen.end.is_err());
    assert!(bodies.iter().filter(failing).count() > 10);
    bodies
}

fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut seeds: Vec<_> = std::fs::read_dir(seeds)
        .expect("the seeds")
        .map(|seed| seed.expect("a seed").path())
        .map(|path| (path.display().to_string(), std::fs::read(&path).expect("a seed")))
        .collect();
    seeds.sort_unstable();
    seeds
}

/// Cut into up to 16 reads anywhere, some of them empty; now and then into very many.
fn cut<'b>(body: &'b [u8], chance: &mut Chance) -> Vec<&'b [u8]> {
    let cuts = if chance.below(16) == 0 { body.len() } else { chance.below(16) };
    let mut at: Vec<usize> = (0..cuts).map(|_| chance.below(body.len() + 1)).collect();
    at.extend([0, body.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &body[pair[0]..pair[1]]).collect()
}

/// SplitMix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}
