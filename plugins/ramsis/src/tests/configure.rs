//! The tables and workers of requests.

use super::*;

fn two_tables(catalog: &Catalog) -> Ramsis {
    configured(catalog, r#"{"tables": ["one", "two"]}"#)
}

fn workers(policy: &Ramsis, class: usize) -> Vec<u32> {
    let workers = policy.classes[class].workers.iter();
    workers.map(|(worker, _)| worker.0).collect()
}

#[test]
fn missing_or_damaged_folders_are_refused() {
    let catalog = catalog(1);
    let refused = |json: &str| Ramsis::configure(&catalog, json).unwrap_err();
    let error = refused(r#"{"tables": "nowhere"}"#);
    assert_eq!(
        error,
        "tables nowhere: no artifact index.json; run `switchyard prepare ramsis`"
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
fn tables_that_do_not_fit_are_logged_and_the_app_is_served_without() {
    let logged = |catalog: &Catalog, change: fn(&mut Set)| {
        let mut changed = set(2);
        change(&mut changed);
        put("image", &changed);
        let mut policy = configured(catalog, r#"{"tables": "image"}"#);
        let window = WindowBuilder::new(catalog).request("image");
        assert_eq!(decide(&mut policy, catalog, window).len(), 1);
        let [reason, without] = warnings().try_into().unwrap();
        assert!(without.starts_with("no tables for image"), "{without}");
        reason
    };
    let two = catalog(2);
    assert_eq!(
        logged(&two, |set| set.workers = 60),
        "tables image: `workers`: is 60 of kind cpu, but the pool has 2"
    );
    assert_eq!(
        logged(&two, |set| set.workers = 1),
        "tables image: `workers`: is 1 of kind cpu, but the pool has 2"
    );
    assert_eq!(
        logged(&two, |set| set.kind = "gpu".to_owned()),
        "tables image: `workers`: is 2 of kind gpu, but the pool has 0"
    );
    assert_eq!(
        logged(&two, |set| set.slo_us = 150_000),
        "tables image: `slo_us`: is 150000, longer than the SLO of app image, 100000"
    );
    assert_eq!(
        logged(&two, |set| set.app = Some("text".to_owned())),
        "tables image: `app`: the pool has no app text"
    );
    assert_eq!(
        logged(&two, |set| set.variants[0] = "medium".to_owned()),
        "tables image: `variants`: app image has no variant medium"
    );
}

#[test]
fn of_several_folders_the_one_for_the_number_of_workers_is_used() {
    put("one", &set(3));
    put("two", &set(2));
    let catalog = catalog(2);
    let policy = two_tables(&catalog);
    assert_eq!(policy.classes.len(), 1);
    assert_eq!(workers(&policy, 0), [0, 1]);
    assert!(warnings().is_empty());
}

#[test]
fn each_deadline_has_its_own_workers() {
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
    // The longer deadline is for requests with more time.
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
        .map(|known| known.worker.unwrap().0)
        .collect();
    assert_eq!(owners, [1, 0, 2, 1, 0]);
    // Three of five arrivals belong to the first class.
    let shares = [policy.classes[0].share, policy.classes[1].share];
    assert!((shares[0] + shares[1] - 1.0).abs() < 1e-12, "{shares:?}");
}

#[test]
fn each_app_has_its_own_tables_and_workers_or_none() {
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
    // By the tables: both requests of `image` with `large`; of `text` one per worker.
    assert_eq!(
        decided,
        [(0, 3, vec![3]), (1, 3, vec![4]), (2, 1, vec![1, 2])]
    );
    // Without tables for `text`, idle workers serve it.
    let mut policy = configured(&catalog, r#"{"tables": "two"}"#);
    assert_eq!(
        warnings(),
        ["no tables for text: served greedily by the most accurate variant in time"]
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
fn each_kind_of_worker_has_its_own_tables_and_shares_the_load() {
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
