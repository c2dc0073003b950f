//! Which tables serve which requests on which workers.

use super::*;

fn two_tables(catalog: &Catalog) -> Ramsis {
    configured(catalog, r#"{"tables": ["one", "two"]}"#)
}

fn workers(policy: &Ramsis, class: usize) -> Vec<u32> {
    let workers = policy.classes[class].workers.iter();
    workers.map(|(worker, _)| worker.0).collect()
}

#[test]
fn folders_that_are_not_there_or_damaged_are_refused() {
    let catalog = catalog(1);
    let refused = |json: &str| Ramsis::configure(&catalog, json).unwrap_err();
    let error = refused(r#"{"tables": "nowhere"}"#);
    assert_eq!(
        error,
        "tables nowhere: there is no artifact index.json; `switchyard prepare ramsis` makes it"
    );
    put("image", &set(1));
    host::native::put_artifact("image/100.table", vec![1, 2, 3]);
    let error = refused(r#"{"tables": "image/"}"#);
    assert!(
        error.starts_with("tables image: 100.table: `file`: "),
        "{error}"
    );
    host::native::put_artifact("image/index.json", b"{\"format\": 9}".to_vec());
    let error = refused(r#"{"tables": "image"}"#);
    assert!(error.starts_with("tables image: index.json: "), "{error}");
    assert!(refused(r#"{"tables": [""]}"#).starts_with("settings: tables: "));
    assert!(refused(r#"{"load_per_s": -1}"#).starts_with("settings: load_per_s: "));
}

#[test]
fn tables_that_do_not_fit_are_named_and_the_app_is_served_without() {
    let told = |catalog: &Catalog, change: fn(&mut Set)| {
        let mut changed = set(2);
        change(&mut changed);
        put("image", &changed);
        let mut policy = configured(catalog, r#"{"tables": "image"}"#);
        let window = WindowBuilder::new(catalog).request("image");
        assert_eq!(decide(&mut policy, catalog, window).len(), 1);
        let [why, without] = warnings().try_into().unwrap();
        assert!(without.starts_with("no tables for image"), "{without}");
        why
    };
    let two = catalog(2);
    assert_eq!(
        told(&two, |set| set.workers = 60),
        "tables image: are for 60 workers of kind cpu, of which the pool has 2"
    );
    assert_eq!(
        told(&two, |set| set.workers = 1),
        "tables image: are for 1 workers of kind cpu, of which the pool has 2"
    );
    assert_eq!(
        told(&two, |set| set.kind = "gpu".to_owned()),
        "tables image: are for 2 workers of kind gpu, of which the pool has 0"
    );
    assert_eq!(
        told(&two, |set| set.slo_us = 150_000),
        "tables image: are for deadlines of 150000 us, the SLO of app image is 100000 us"
    );
    assert_eq!(
        told(&two, |set| set.app = Some("text".to_owned())),
        "tables image: there is no app text"
    );
    assert_eq!(
        told(&two, |set| set.variants[0] = "medium".to_owned()),
        "tables image: app image has no variant medium"
    );
}

#[test]
fn of_several_folders_those_for_this_many_workers_serve() {
    put("one", &set(3));
    put("two", &set(2));
    let catalog = catalog(2);
    let policy = two_tables(&catalog);
    assert_eq!(policy.classes.len(), 1);
    assert_eq!(workers(&policy, 0), [0, 1]);
    assert!(warnings().is_empty());
}

#[test]
fn deadlines_have_classes_with_workers_of_their_own() {
    put(
        "one",
        &Set {
            slo_us: 200_000,
            ..set(1)
        },
    );
    put("two", &set(2));
    let catalog = catalog(3);
    let mut policy = two_tables(&catalog);
    // The longer deadline is for clients that ask for more time.
    assert_eq!(
        [policy.classes[0].slo_us, policy.classes[1].slo_us],
        [100_000, 200_000]
    );
    assert_eq!(
        (workers(&policy, 0), workers(&policy, 1)),
        (vec![1, 2], vec![0])
    );
    let slacks = [199_999, 200_000, 50_000, 100_000, 900_000];
    let window = slacks
        .iter()
        .fold(WindowBuilder::new(&catalog), |window, &slack_us| {
            window.request("image").slack_us(slack_us)
        });
    decide(&mut policy, &catalog, window);
    let owners: Vec<u32> = policy
        .queues
        .known
        .iter()
        .map(|known| known.worker)
        .collect();
    assert_eq!(owners, [1, 0, 2, 1, 0]);
    // Three of five arrivals were the first class's.
    let shares = [policy.classes[0].share, policy.classes[1].share];
    assert!((shares[0] + shares[1] - 1.0).abs() < 1e-12, "{shares:?}");
}

#[test]
fn apps_have_tables_and_workers_of_their_own_or_none() {
    let builder = app(app(CatalogBuilder::new(), "image"), "text");
    let builder = ["w0", "w1", "w2"]
        .into_iter()
        .fold(builder, CatalogBuilder::worker);
    let catalog = builder.build();
    let of = |app: &str, workers| Set {
        app: Some(app.to_owned()),
        ..set(workers)
    };
    put("one", &of("text", 2));
    put("two", &of("image", 1));
    let mut policy = two_tables(&catalog);
    let window = WindowBuilder::new(&catalog)
        .requests(2, "image")
        .requests(2, "text");
    let decided = decide(&mut policy, &catalog, window);
    // By the table: both of `image` with `large`; of `text` one each.
    assert_eq!(
        decided,
        [(0, 3, vec![3]), (1, 3, vec![4]), (2, 1, vec![1, 2])]
    );
    // Without tables for `text`, whoever has nothing else to do serves it.
    let mut policy = configured(&catalog, r#"{"tables": "two"}"#);
    assert_eq!(
        warnings(),
        ["no tables for text: the most accurate variant in time serves"]
    );
    let window = WindowBuilder::new(&catalog)
        .request("image")
        .request("text")
        .slack_us(60_000);
    let window = window.request("text");
    let decided = decide(&mut policy, &catalog, window);
    assert_eq!(decided, [(0, 1, vec![1]), (1, 2, vec![2, 3])]);
}

#[test]
fn kinds_of_workers_have_tables_of_their_own_and_share_the_load() {
    let catalog = app(CatalogBuilder::new(), "image")
        .worker("w0")
        .worker_of("w1", "gpu")
        .build();
    put(
        "one",
        &Set {
            kind: "gpu".to_owned(),
            ..set(2)
        },
    );
    put("two", &set(2));
    let policy = two_tables(&catalog);
    assert_eq!(policy.classes.len(), 1);
    assert_eq!(
        policy.classes[0].workers,
        [(WorkerId(0), 1), (WorkerId(1), 0)]
    );
    assert!(warnings().is_empty());
}
