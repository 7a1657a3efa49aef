//! Lines that a program prints, beside those that its records tell.

use super::*;
use opdev_event::Level;

fn lines(world: &World) -> Vec<(String, Option<u64>)> {
    let line = |event: &Event| match event {
        Event::Log(line) => Some((line.message.clone(), line.reconcile)),
        _ => None,
    };
    world.events.iter().filter_map(line).collect()
}

impl World {
    fn connect(&mut self, pid: u32) {
        self.tell(Record::Hello(Hello { pid, ..Hello::default() }));
    }

    fn log(&mut self, printed: &str, message: &str) {
        let (id, message, printed) = ("a".to_owned(), message.to_owned(), printed.to_owned());
        self.tell(Record::Log(LogRecord { id, message, printed, ..LogRecord::default() }));
    }

    fn print(&mut self, name: &str, message: &str, stack: &str) {
        let at = time(self.now());
        let line = LogLine {
            at,
            level: Level::Error,
            target: "operator".to_owned(),
            message: [message, stack].join("\n").trim_end().to_owned(),
            reconcile: None,
        };
        let name = LineName::read(name).unwrap();
        self.see(Seen::Printed(PrintedLine { name, line, stack: stack.to_owned() }));
    }
}

#[test]
fn a_line_that_is_printed_and_told_is_shown_once_whichever_comes_first() {
    let mut world = World::new();
    world.connect(7);
    world.begin("podset", "a", Vec::new());
    world.print("7.1", "printed first", "");
    assert!(lines(&world).is_empty(), "it waits for its record");
    world.log("7.1", "printed first");
    world.log("7.2", "told first");
    world.print("7.2", "told first", "");
    world.log("", "told only");
    let reconcile = world.end("a", "").id;
    let shown = ["printed first", "told first", "told only"].map(|text| (text.to_owned(), Some(reconcile)));
    assert_eq!(lines(&world), shown);
}

#[test]
fn the_stack_that_is_printed_below_a_line_is_shown_too() {
    let mut world = World::new();
    world.connect(7);
    world.begin("podset", "a", Vec::new());
    world.print("7.1", "one", "main.main\n    main.go:1");
    world.log("7.1", "one");
    world.log("7.2", "two");
    world.print("7.2", "two", "main.main\n    main.go:2");
    let reconcile = world.end("a", "").id;
    let shown = ["one\nmain.main\n    main.go:1", "two", "main.main\n    main.go:2"];
    assert_eq!(lines(&world), shown.map(|text| (text.to_owned(), Some(reconcile))));
}

#[test]
fn what_the_trace_does_not_deliver_is_shown_as_it_was_printed() {
    let mut world = World::new();
    world.print("7.1", "nobody is connected", "");
    assert_eq!(lines(&world).len(), 1);
    world.connect(7);
    world.print("8.1", "of another process", "");
    assert_eq!(lines(&world).len(), 2);
    world.print("7.2", "the last words", "");
    assert_eq!(lines(&world).len(), 2);
    world.tell(Record::Closed);
    world.print("7.3", "read late", "");
    let texts: Vec<String> = lines(&world).into_iter().map(|(text, _)| text).collect();
    assert_eq!(texts, ["nobody is connected", "of another process", "the last words", "read late"]);
}
