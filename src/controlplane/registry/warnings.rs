//! Warnings of a real server about an object that it accepts: those of its kind, and of its finalizers. Never
//! refuses anything.

use super::context::Context;
use super::strategy::strategy_of;
use opdev_apimachinery::resource::Resource;
use opdev_validation::warnings::{Warnings, finalizers};
use serde_json::Value;

/// Warns of a new object, or of one that may replace another.
pub(crate) fn warn(ctx: &mut Context, resource: &Resource, object: &Value, current: Option<&Value>) {
    let mut told = Warnings::default();
    if resource.custom.is_some() || !resource.rules.any_finalizer {
        finalizers(&mut told, object, current);
    }
    if resource.custom.is_none() {
        (strategy_of(resource).warn)(&mut told, object, current);
    }
    told.into_iter().for_each(|text| ctx.warn(text));
}

/// Warns of a new status.
pub(crate) fn warn_of_status(ctx: &mut Context, resource: &Resource, object: &Value) {
    let mut told = Warnings::default();
    (strategy_of(resource).warn_of_status)(&mut told, object);
    told.into_iter().for_each(|text| ctx.warn(text));
}
