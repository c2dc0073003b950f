//! Encoders that read pairs of texts; their scores are compared in `bert`.

use candle_core::Device;
use switchyard_models::tokens::stack;

use crate::bert::{CASES, Head, PAIRS, inputs, load, pairs, rows, scores_of};

#[test]
fn a_score_has_its_function_and_depends_on_both_texts() {
    for case in CASES.iter().filter(|case| case.head == Head::Score) {
        let (_dir, loaded) = load(case);
        assert_eq!((loaded.model.classes(), loaded.model.answer_len()), (1, 1));
        let whole = loaded.model.forward(0, &inputs(case, &loaded)).unwrap();
        for (score, logit) in rows(&whole)
            .iter()
            .zip(scores_of(&loaded, inputs(case, &loaded)))
        {
            let want = 1.0 / (1.0 + (-logit[0]).exp());
            assert!((score[0] - want).abs() < 1e-6, "{score:?} {want}");
        }
        let other = [(PAIRS[0].0, "w40 w41 w42 w43")];
        let other = scores_of(&loaded, pairs(&loaded, &other))[0][0];
        let first = scores_of(&loaded, inputs(case, &loaded))[0][0];
        assert!((other - first).abs() > 1e-4, "{other} {first}");
    }
}

#[test]
fn a_pair_is_cut_at_its_longer_text_and_tells_its_texts_apart() {
    let (_dir, loaded) = load(&CASES[4]);
    let tokenizer = loaded.model.tokenizer().unwrap();
    assert_eq!((tokenizer.texts(), tokenizer.special_tokens()), (2, 3));
    let tokens = tokenizer.pair(PAIRS[2].0, PAIRS[2].1).unwrap();
    let ids: Vec<u32> = tokens.iter().map(|token| token.id).collect();
    assert_eq!(ids, [2, 10, 11, 12, 13, 3, 20, 21, 22, 23, 24, 25, 3]);
    let second = tokens.iter().filter(|token| token.segment == 1).count();
    assert_eq!(second, 7);
    let single = stack(&[tokenizer.ids("w4").unwrap()], &Device::Cpu).unwrap();
    assert!(loaded.model.run_stage(0, &single).is_err(), "one text");
}
