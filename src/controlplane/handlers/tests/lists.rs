//! Lists: selectors, pages, revisions, forms.

use super::*;

async fn names(api: &Api, uri: &str) -> Vec<String> {
    let list = get(api, uri).await.expect(StatusCode::OK);
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

async fn five(api: &Api) {
    for name in ["a", "b", "c", "d", "e"] {
        let mut object = config_map(name);
        object["metadata"]["labels"] = json!({"odd": (["a", "c", "e"].contains(&name)).to_string()});
        post(api, MAPS, object).await.expect(StatusCode::CREATED);
    }
}

#[tokio::test]
async fn selectors() {
    let api = api();
    five(&api).await;
    assert_eq!(names(&api, &format!("{MAPS}?labelSelector=odd%3Dtrue")).await, ["a", "c", "e"]);
    assert_eq!(names(&api, "/api/v1/configmaps?labelSelector=odd%20notin%20(true)").await, ["b", "d"]);
    assert_eq!(names(&api, &format!("{MAPS}?fieldSelector=metadata.name%3Db")).await, ["b"]);
    let unknown = get(&api, &format!("{MAPS}?fieldSelector=data.a%3Db")).await;
    assert_eq!(
        unknown.message(),
        "\"data.a\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    );
    unknown.expect(StatusCode::BAD_REQUEST);
    let unknown = get(&api, &format!("{PODS}?fieldSelector=spec.foo%3Db")).await;
    assert_eq!(unknown.message(), "field label not supported: spec.foo");
    post(&api, PODS, pod("p")).await.expect(StatusCode::CREATED);
    assert_eq!(
        names(&api, &format!("{PODS}?fieldSelector=status.phase%3DPending,spec.nodeName%3D")).await,
        ["p"]
    );
}

/// Answers of a real server (1.37.2) about objects of the same names.
#[tokio::test]
async fn some_kinds_are_selected_by_fields_of_their_own() {
    const EVENTS: &str = "/api/v1/namespaces/default/events";
    const SLICES: &str = "/apis/resource.k8s.io/v1/resourceslices";
    let api = api();
    let new = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "new"}, "note": "n",
        "regarding": {"kind": "Pod", "name": "x", "namespace": "default"}, "reportingController": "c", "reason": "r",
        "eventTime": "2026-01-02T03:04:05.000000Z", "reportingInstance": "i", "action": "a", "type": "Normal"});
    post(&api, "/apis/events.k8s.io/v1/namespaces/default/events", new).await.expect(StatusCode::CREATED);
    let old = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "old"}, "reason": "r",
        "involvedObject": {"kind": "Pod", "name": "x", "namespace": "default"}, "source": {"component": "s"}});
    post(&api, EVENTS, old).await.expect(StatusCode::CREATED);
    for (name, place) in [("one", json!({"nodeName": "n"})), ("all", json!({"allNodes": true}))] {
        let mut slice = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name},
            "spec": {"driver": "d.example.com", "pool": {"name": name, "generation": 1, "resourceSliceCount": 1}}});
        slice["spec"].as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
        post(&api, SLICES, slice).await.expect(StatusCode::CREATED);
    }
    let mut bound = pod("bound");
    bound["spec"]["nodeName"] = json!("n");
    post(&api, PODS, bound).await.expect(StatusCode::CREATED);
    for (collection, selector, selected) in [
        (EVENTS, "source%3Dc", vec!["new"]),
        (EVENTS, "source%3Ds", vec!["old"]),
        (EVENTS, "source!%3Dc", vec!["old"]),
        (SLICES, "spec.nodeName%3Dn", vec!["one"]),
        (SLICES, "spec.nodeName%3D", vec!["all"]),
        (SLICES, "spec.driver%3Dd.example.com", vec!["all", "one"]),
        (SLICES, "spec.pool.name%3Done", vec!["one"]),
        (PODS, "spec.host%3Dn", vec!["bound"]),
        (PODS, "status.podIPs%3D", vec!["bound"]),
        ("/api/v1/persistentvolumes", "metadata.namespace%3Dx", vec![]),
    ] {
        assert_eq!(
            names(&api, &format!("{collection}?fieldSelector={selector}")).await,
            selected,
            "{selector}"
        );
    }
    for (collection, message) in [
        (SLICES, "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: a"),
        ("/apis/batch/v1/jobs", "field label \"a\" not supported for Job"),
        (EVENTS, "field label not supported: a"),
    ] {
        let refused = get(&api, &format!("{collection}?fieldSelector=a%3Db")).await;
        assert_eq!(refused.message(), message);
        refused.expect(StatusCode::BAD_REQUEST);
    }
}

#[tokio::test]
async fn pages_show_one_moment() {
    let api = api();
    five(&api).await;
    let first = get(&api, &format!("{MAPS}?limit=2")).await.expect(StatusCode::OK);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    post(&api, MAPS, config_map("bb")).await.expect(StatusCode::CREATED);
    let mut token = first["metadata"]["continue"].as_str().unwrap().to_owned();
    let mut seen = Vec::new();
    for expected in [vec!["c", "d"], vec!["e"]] {
        let page = get(&api, &format!("{MAPS}?limit=2&continue={token}")).await.expect(StatusCode::OK);
        assert_eq!(page["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
        let items = page["items"].as_array().unwrap();
        assert_eq!(
            items.iter().map(|i| i["metadata"]["name"].as_str().unwrap()).collect::<Vec<_>>(),
            expected
        );
        seen.push(items.len());
        token = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
    }
    assert_eq!((seen, token.as_str()), (vec![2, 1], ""));
    let bad = get(&api, &format!("{MAPS}?limit=2&continue=nonsense")).await;
    bad.expect(StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn revisions() {
    let api = api();
    let made = post(&api, MAPS, config_map("a")).await.expect(StatusCode::CREATED);
    let at = made["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    post(&api, MAPS, config_map("b")).await.expect(StatusCode::CREATED);
    let exact = format!("{MAPS}?resourceVersion={at}&resourceVersionMatch=Exact");
    assert_eq!(names(&api, &exact).await, ["a"]);
    let newer = format!("{MAPS}?resourceVersion={at}&resourceVersionMatch=NotOlderThan");
    assert_eq!(names(&api, &newer).await, ["a", "b"]);
    assert_eq!(names(&api, &format!("{MAPS}?resourceVersion=0")).await, ["a", "b"]);
    let future =
        get(&api, &format!("{MAPS}?resourceVersion=99999")).await.expect(StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(future["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    assert_eq!(future["details"]["retryAfterSeconds"], 1);
    let wrong = get(&api, &format!("{MAPS}?resourceVersionMatch=Exact")).await;
    assert_eq!(
        wrong.message(),
        "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: \
         resourceVersionMatch is forbidden unless resourceVersion is provided"
    );
}

#[tokio::test]
async fn a_collection_goes_by_selector() {
    let api = api();
    five(&api).await;
    let gone = ask(&api, "DELETE", &format!("{MAPS}?labelSelector=odd%3Dtrue"), Value::Null).await;
    assert_eq!(gone.expect(StatusCode::OK)["items"].as_array().unwrap().len(), 3);
    assert_eq!(names(&api, MAPS).await, ["b", "d"]);
}

#[tokio::test]
async fn tables_and_metadata() {
    let api = api();
    five(&api).await;
    let read = async |accept: &'static str| {
        let request = Request::builder().uri(MAPS).header("accept", accept);
        let request = request.body(Full::new(Bytes::new())).unwrap();
        let bytes = api.call(&User::admin(), request).await.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice::<Value>(&bytes).unwrap()
    };
    let table = read("application/json;as=Table;v=v1;g=meta.k8s.io,application/json").await;
    assert_eq!((&table["kind"], table["rows"].as_array().unwrap().len()), (&json!("Table"), 5));
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let metadata = read("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io").await;
    assert_eq!(metadata["kind"], "PartialObjectMetadataList");
    assert!(metadata["items"][0].get("data").is_none());
}

/// Long lists are sent in parts, and are the same as one page at a time.
#[tokio::test]
async fn long_tables_and_metadata_lists_come_in_parts() {
    let api = api();
    for at in 0..40 {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("long-{at:02}"),
            "annotations": {"note": "n".repeat(4_000)}}, "data": {"text": "t".repeat(10_000)}});
        post(&api, MAPS, map).await.expect(StatusCode::CREATED);
    }
    for (accept, list, rows) in [
        ("application/json;as=Table;v=v1;g=meta.k8s.io", "Table", "rows"),
        (
            "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            "PartialObjectMetadataList",
            "items",
        ),
    ] {
        let read = async |uri: &str| {
            let request = Request::builder().uri(uri).header("accept", accept);
            let request = request.body(Full::new(Bytes::new())).unwrap();
            let mut body = api.call(&User::admin(), request).await.into_body();
            let (mut bytes, mut parts) = (Vec::new(), 0);
            while let Some(frame) = body.frame().await {
                bytes.extend_from_slice(&frame.unwrap().into_data().unwrap());
                parts += 1;
            }
            (serde_json::from_slice::<Value>(&bytes).unwrap(), parts)
        };
        let (whole, parts) = read(MAPS).await;
        assert!(parts > 1, "{accept}: {parts}");
        let mut paged = Vec::new();
        let mut next = String::new();
        loop {
            let (page, parts) = read(&format!("{MAPS}?limit=7&continue={next}")).await;
            assert_eq!((&page["kind"], parts), (&json!(list), 1));
            paged.extend(page[rows].as_array().unwrap().iter().cloned());
            next = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
            if next.is_empty() {
                break;
            }
        }
        assert_eq!((whole["kind"].as_str(), paged.len()), (Some(list), 40));
        // Ages are those of the moment of asking.
        let steady = |row: &Value| {
            (row["object"]["metadata"].clone(), row["metadata"].clone(), row["cells"][0].clone())
        };
        let whole: Vec<_> = whole[rows].as_array().unwrap().iter().map(steady).collect();
        assert_eq!(whole, paged.iter().map(steady).collect::<Vec<_>>());
    }
}
