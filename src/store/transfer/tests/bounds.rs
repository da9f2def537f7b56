//! What a file may come to.

use super::*;

#[test]
fn what_a_small_file_comes_to_is_bounded() {
    let image = Message::User(vec![Part::text("y".repeat(20_000))]);
    let whole = written(SessionFormat::Jsonl, vec![head(), said("c", &image)]);
    let lines: Vec<&str> = whole.lines().collect();
    let with = |parts: usize, place: fn(usize) -> usize| {
        let mut line: Value = serde_json::from_str(lines[2]).unwrap();
        let message = &mut line["message"];
        let attached = message["attached"][0].clone();
        let part = json!({"type": "text", "text": ""});
        message["message"]["content"] = vec![part; parts].into();
        let attached = (0..parts).map(|number| {
            let mut attached = attached.clone();
            attached["part"] = place(number).into();
            attached
        });
        message["attached"] = attached.collect::<Vec<_>>().into();
        read(&[lines[0], lines[1], &line.to_string(), lines[3]].join("\n"))
    };
    with(100, |number| number).unwrap();
    let problem = with(14_000, |number| number).unwrap_err();
    assert!(
        problem.contains("its attachments come to more than"),
        "{problem}"
    );
    let problem = with(2, |_| 0).unwrap_err();
    assert!(problem.contains("part 0 has two attachments"), "{problem}");
}
