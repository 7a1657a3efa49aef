//! The tests of printing see every kind of event.

use super::tests::all;
use opdev_event::Event;
use std::collections::BTreeSet;

fn variant(event: &Event) -> usize {
    match event {
        Event::Started(_) => 0,
        Event::SourcesChanged(_) => 1,
        Event::ReloadFailed(_) => 2,
        Event::ReloadSettled(_) => 3,
        Event::ObjectSeen(_) => 4,
        Event::ObjectGone(_) => 5,
        Event::ReconcileStarted(_) => 6,
        Event::Reconciled(_) => 7,
        Event::QueueChanged(_) => 8,
        Event::Log(_) => 9,
        Event::LogDropped { .. } => 10,
        Event::RequestStarted(_) => 11,
        Event::RequestFinished(_) => 12,
        Event::Noticed(_) => 13,
        Event::Stopping { .. } => 14,
        Event::BuildChanged(_) => 34,
        Event::ProcessChanged(_) => 35,
        Event::TypeChanged(_) => 15,
        Event::ShadowRun(_) => 16,
        Event::Held(_) => 17,
        Event::Released(_) => 18,
        Event::HoldChanged { .. } => 36,
        Event::Disturbed { .. } => 37,
        Event::UnrelatedSeen(_) => 38,
        Event::PreferencesChanged(_) => 19,
        Event::PausesChanged { .. } => 20,
        Event::PodLog(_) => 21,
        Event::DraftChanged(_) => 22,
        Event::UndoChanged { .. } => 23,
        Event::LoopFound(_) => 24,
        Event::ProtectionChanged(_) => 25,
        Event::ConnectionChanged(_) => 26,
        Event::CopiesChanged(_) => 27,
        Event::Leaving(_) => 28,
        Event::PathsListed(_) => 29,
        Event::RulesMissing { .. } => 30,
        Event::ValuesExplained(_) => 31,
        Event::KindsServed { .. } => 39,
        Event::TableChanged { .. } => 40,
        Event::FilesListed { .. } => 42,
        Event::RowRead(_) => 41,
        Event::FindingOpened(_) => 43,
        Event::FindingCounted(_) => 44,
        Event::FindingClosed(_) => 45,
        Event::BackgroundChanged(_) => 46,
        Event::TrustAsked(_) => 32,
        Event::TrustAnswered(_) => 33,
    }
}

#[test]
fn every_variant_is_here() {
    let seen: BTreeSet<usize> = all().iter().map(variant).collect();
    assert_eq!(seen, (0..47).collect());
}
