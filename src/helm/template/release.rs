//! The end of values that hold values: as deep as they are nested, the stack stays short.

use std::any::Any;
use std::cell::{Cell, RefCell};

/// How many values let go of each other on the stack; a template can nest them as deep as it has time for.
const MOST_NESTED: u32 = 100;

thread_local! {
    static NESTED: Cell<u32> = const { Cell::new(0) };
    /// Values to drop once the stack is short again.
    static WAITING: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// Drops what a value has held: values inside it on the stack, and what is deeper afterwards, one after the
/// other.
pub(super) fn release<T: 'static>(held: T) {
    let nested = NESTED.get();
    if nested >= MOST_NESTED {
        // Where the thread ends there is nothing left to keep it in: then it is dropped here.
        let _ = WAITING.try_with(|waiting| waiting.borrow_mut().push(Box::new(held)));
        return;
    }
    NESTED.set(nested + 1);
    drop(held);
    if nested == 0 {
        while let Ok(Some(held)) = WAITING.try_with(|waiting| waiting.borrow_mut().pop()) {
            drop(held);
        }
    }
    NESTED.set(nested);
}
