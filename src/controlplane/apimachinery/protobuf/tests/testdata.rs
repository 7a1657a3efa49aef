//! For maintainers: `OPDEV_API_TESTDATA` names the folder `testdata/HEAD` of the Go module `k8s.io/api`,
//! which has every kind with all of its fields set, in JSON, YAML and protobuf. None of them may be left out.

use super::*;
use crate::protobuf::encode::{envelope, put_message};
use opdev_object::yaml;

/// The event of a watch is the only one that does not say what it is.
const OF_NO_KIND: &str = "core.v1.WatchEvent";

fn read(name: &str, bytes: &[u8]) -> Result<Value, Error> {
    if name != OF_NO_KIND {
        return decode(bytes);
    }
    let mut raw = &[][..];
    for field in Fields(&bytes[MAGIC.len()..]) {
        if let (2, inside) = field? {
            raw = inside.bytes()?;
        }
    }
    message(messages::definition("v1", "WatchEvent")?, raw, 0)
}

fn written(name: &str, object: &Value) -> Result<Vec<u8>, Error> {
    if name != OF_NO_KIND {
        return encode(object);
    }
    let mut inside = Vec::new();
    put_message(&mut inside, messages::definition("v1", "WatchEvent")?, object, 0)?;
    Ok(envelope("", "", &inside))
}

/// The forms of one kind that do not survive the round trip: files `name` with three endings.
fn problems(path: &std::path::Path, name: &str) -> Vec<String> {
    let file = |ending: &str| std::fs::read(path.with_file_name(format!("{name}.{ending}"))).unwrap();
    let given: Value = serde_json::from_slice(&file("json")).unwrap();
    let (bytes, text) = (file("pb"), String::from_utf8(file("yaml")).unwrap());
    let mut found = Vec::new();
    match read(name, &bytes) {
        Ok(read) if read == given => {}
        Ok(read) => found.push(format!("protobuf to JSON: {}", difference(&read, &given, ""))),
        Err(why) => found.push(format!("protobuf to JSON: {why}")),
    }
    match written(name, &given) {
        Ok(written) if written == bytes => {}
        Ok(written) => {
            let at = written.iter().zip(&bytes).position(|(a, b)| a != b);
            found.push(format!("JSON to protobuf: at {at:?} of {}, not {}", written.len(), bytes.len()));
        }
        Err(why) => found.push(format!("JSON to protobuf: {why}")),
    }
    match yaml::from_str(&text) {
        Ok(read) if read == given => {}
        Ok(read) => found.push(format!("YAML to JSON: {}", difference(&read, &given, ""))),
        Err(why) => found.push(format!("YAML to JSON: {why}")),
    }
    let ours = yaml::to_string(&given);
    if ours != text {
        let at = ours.lines().zip(text.lines()).find(|(a, b)| a != b);
        found.push(format!("JSON to YAML: {at:?}"));
    }
    if yaml::from_str(&ours).ok().as_ref() != Some(&given) {
        found.push("JSON to YAML: reads back as something else".to_owned());
    }
    found
}

#[test]
#[ignore = "needs OPDEV_API_TESTDATA"]
fn every_kind_of_the_real_testdata_goes_round() {
    let folder = std::env::var_os("OPDEV_API_TESTDATA").expect("OPDEV_API_TESTDATA names no folder");
    let (mut count, mut bad) = (0, Vec::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        count += 1;
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        bad.extend(problems(&path, &name).into_iter().map(|problem| format!("{name}: {problem}")));
    }
    bad.sort();
    assert!(bad.is_empty(), "of {count} kinds:\n{}", bad.join("\n"));
    assert_eq!(count, 185, "k8s.io/api 0.36 has 185 kinds");
}
