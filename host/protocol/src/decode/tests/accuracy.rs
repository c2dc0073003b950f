//! Requests for a least accuracy.

use super::*;

/// A request for an accuracy of at least `least`.
fn asking(
    app: &AppInfo,
    variant: Option<VariantIndex>,
    least: &str,
) -> Result<DecodedRequest, String> {
    let target = DecodeTarget {
        app_index: AppIndex(0),
        app,
        variant,
        framing: BodyFraming::Json,
    };
    let json = format!(
        r#"{{"parameters":{{"min_accuracy":{least}}},"outputs":[{{"name":"scores"}}],
            "inputs":[{{"name":"ecg","shape":[1,3],"datatype":"FP32","data":[1,2,3]}}]}}"#
    );
    decode(target, &Bytes::from(json)).map_err(|error| error.to_string())
}

#[test]
fn an_accuracy_that_no_answer_has_is_refused() {
    let app = one_input();
    let asked = |variant, least| asking(&app, variant, least);
    assert!(asked(None, "0.95").is_ok());
    assert_eq!(
        asked(None, "0.96").unwrap_err(),
        "parameters.min_accuracy: 0.96, the highest accuracy of `heart` is 0.95"
    );
    assert_eq!(
        asked(Some(VariantIndex(0)), "0.95").unwrap_err(),
        "parameters.min_accuracy: 0.95, the highest accuracy of `cnn` is 0.9"
    );
}

#[test]
fn an_accuracy_is_refused_where_the_quality_is_unknown() {
    let mut app = one_input();
    app.variants.push("new".to_owned());
    app.accuracies.push(None);
    let asked = |variant, least| asking(&app, variant, least);
    let refused = "parameters.min_accuracy: 0.2, but the quality of `new` is unknown: leave it \
                   out, or state the quality in the card of the variant";
    assert_eq!(asked(None, "0.2").unwrap_err(), refused);
    assert_eq!(asked(Some(VariantIndex(1)), "0.2").unwrap_err(), refused);
    assert!(asked(Some(VariantIndex(0)), "0.2").is_ok());
    assert!(asked(None, "0").is_ok());
}
