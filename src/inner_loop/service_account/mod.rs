//! The operator as its own ServiceAccount: its calls go out with the roles of `config/rbac` and no more. On
//! the embedded control plane the role files are applied at the start and whenever one is saved; on a real
//! cluster the ServiceAccount is impersonated and its roles are those of the cluster. A refused call becomes
//! the rule that is missing. `project/generate/rbac` reads the role files and turns refusals into rules and
//! texts; `witness` sees the calls.

mod witness;

use anyhow::{Context as _, Result, bail};
use http::HeaderValue;
use http::Method;
use jiff::Timestamp;
use kube::Client;
use opdev_client::backoff::{AGAIN, Backoff, may_pass};
use opdev_client::forbidden::MissingRight;
use opdev_client::{OWN_MANAGER, send};
use opdev_cluster::Connection;
use opdev_cluster::identity::Identity;
use opdev_controlplane::User;
use opdev_event::sink::EventSink;
use opdev_event::{Event, Level, MissingRule, Notice, words};
use opdev_generate::rbac::addition::Rules;
use opdev_generate::rbac::role_files::{Account, FOLDER, Home, RoleFiles, path_of};
use opdev_operator::manager::ManagerRequest;
use opdev_os::watcher::{WatchSet, Watcher};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use witness::Witness;

/// Refusals that may wait.
const WAITING: usize = 256;

/// Applies the role files of the operator's ServiceAccount whenever they change, and reports the rules that
/// are missing.
pub(crate) struct RoleSync {
    rules: Rules,
    /// Asks and writes in the user's name.
    admin: Client,
    events: EventSink,
    refused: mpsc::Receiver<MissingRight>,
    /// The objects that were applied last, by path.
    applied: BTreeMap<String, Value>,
    /// Paths whose write failed for a moment; they are tried again.
    failing: BTreeSet<String>,
    backoff: Backoff,
    home: Home,
}

impl RoleSync {
    /// Whom the operator calls as, and who keeps its roles. The role files are applied before it returns.
    ///
    /// # Errors
    /// Where the ServiceAccount may not be impersonated, or the API server refuses the namespace or the
    /// account.
    pub(crate) async fn open(
        connection: &Connection,
        root: &Path,
        named: &str,
        events: EventSink,
    ) -> Result<(Identity, RoleSync)> {
        let files = read(root).await?;
        let account = files.account(named);
        let applies = connection.cluster.embedded;
        let admin = connection.client.clone();
        let client = match connection.as_service_account(&account.namespace, &account.name) {
            Some(client) => client,
            None => {
                may_impersonate(&admin, &account, &connection.cluster.name).await?;
                admin.clone()
            }
        };
        let impersonate = (!applies).then(|| HeaderValue::from_str(&account.user())).transpose()?;
        let (sender, refused) = mpsc::channel(WAITING);
        let witness = Witness { client, own: admin.clone(), impersonate, refused: sender.clone() };
        let client = Client::new(witness, connection.namespace.clone());
        let user = User::service_account(&account.namespace, &account.name);
        let identity = Identity { client, user, refused: sender };
        let home = files.home(&account);
        let rules = Rules { root: root.to_owned(), account, applies, missing: Arc::default() };
        let mut role_sync = RoleSync::new(rules, admin, events, refused, home);
        role_sync.announce(&files, &connection.cluster.name).await;
        if applies {
            role_sync.apply(&files).await;
        }
        Ok((identity, role_sync))
    }

    fn new(
        rules: Rules,
        admin: Client,
        events: EventSink,
        refused: mpsc::Receiver<MissingRight>,
        home: Home,
    ) -> RoleSync {
        let (applied, failing, backoff) = (BTreeMap::new(), BTreeSet::new(), Backoff::default());
        RoleSync { rules, admin, events, refused, applied, failing, backoff, home }
    }

    /// For who adds rules.
    pub(crate) fn rules(&self) -> Rules {
        self.rules.clone()
    }

    async fn announce(&self, files: &RoleFiles, cluster: &str) {
        let account = self.rules.account.user();
        let Home { file, kind, name } = &self.home;
        if !self.rules.applies {
            let message = format!("the operator impersonates {account} on {cluster} (Impersonate-User)");
            let hint = format!("its roles are those of the cluster; {FOLDER} is not applied to it");
            return self.notice(Level::Info, message, Some(hint)).await;
        }
        let source = match (&files.generated, self.rules.root.join(file).is_file()) {
            (Some(_), _) => format!("what `opdev rbac --from-charts` would write, for {FOLDER} has no role"),
            (None, true) => FOLDER.to_owned(),
            (None, false) => format!("none: {FOLDER} has no role for it"),
        };
        let message = format!("the operator runs as {account}, and roles are enforced; its roles: {source}");
        let hint = format!(
            "rules are taken up from {FOLDER} when they are saved; new ones go to {kind} {name} in {file}"
        );
        self.notice(Level::Info, message, Some(hint)).await;
    }

    async fn notice(&self, level: Level, message: String, hint: Option<String>) {
        let notice = Notice { at: Timestamp::now(), level, message, hint, object: None };
        self.events.emit(Event::Noticed(notice)).await;
    }

    /// Runs until it is dropped.
    pub(crate) async fn run(mut self, operator: mpsc::Sender<ManagerRequest>, quiet: Duration, poll: bool) {
        // The watcher of the project's files tells of a refusal by the kernel.
        let watcher = Watcher::start(quiet, poll).or_else(|_| Watcher::start(quiet, true));
        let Ok(mut watcher) = watcher else { return };
        let mut first = true;
        loop {
            if let Err(error) = watcher.watch(&self.folders(), true) {
                tracing::warn!("changes of {FOLDER} are not seen: {error:#}");
            }
            // Read once it is listened to: what was saved while nobody listened is seen, too.
            self.saved(&operator, first).await;
            first = false;
            let saved = watcher.next(&self.rules.root);
            tokio::pin!(saved);
            loop {
                tokio::select! {
                    refusal = self.refused.recv() => match refusal {
                        Some(refusal) => self.lacks(refusal).await,
                        None => return,
                    },
                    _ = &mut saved => break,
                    () = self.backoff.due() => break,
                }
            }
        }
    }

    fn folders(&self) -> WatchSet {
        let (root, folder) = (&self.rules.root, self.rules.root.join(FOLDER));
        let mut set = WatchSet::default();
        match (folder.is_dir(), root.join("config").is_dir()) {
            (true, _) => set.deep.insert(folder),
            (false, true) => set.flat.insert(root.join("config")),
            (false, false) => set.flat.insert(root.clone()),
        };
        set
    }

    /// A role file was saved, or may have been since they were read `first`: then what is wrong has been
    /// told.
    async fn saved(&mut self, operator: &mpsc::Sender<ManagerRequest>, first: bool) {
        let Ok(files) = read(&self.rules.root).await else { return };
        if first && !files.problems.is_empty() {
            return;
        }
        self.home = files.home(&self.rules.account);
        if !self.rules.applies {
            return;
        }
        let changed = self.apply(&files).await;
        if changed.is_empty() {
            return;
        }
        self.ask_again().await;
        self.notice(Level::Info, format!("roles are live: {}", changed.join(", ")), None).await;
        // Watches that were refused are begun again, and what failed need not wait.
        let _ = operator.send(ManagerRequest::Connection { lost: false }).await;
        let why = format!("retry: {} changed", changed.join(", "));
        let _ = operator.send(ManagerRequest::ReconcileAll { why }).await;
    }

    /// Brings what the files say to the API server; the answer is what has changed. Broken files change
    /// nothing.
    async fn apply(&mut self, files: &RoleFiles) -> Vec<String> {
        if !files.problems.is_empty() {
            for problem in &files.problems {
                let (message, hint) = (words::diagnostic(problem), problem.hint.clone());
                self.notice(Level::Error, message, hint).await;
            }
            return Vec::new();
        }
        let mut wanted = BTreeMap::new();
        let mut changed = Vec::new();
        let mut all = BTreeSet::new();
        for object in files.objects(&self.rules.account) {
            let path = path_of(&object);
            all.insert(path.clone());
            let known = self.applied.get(&path) == Some(&object);
            if !known {
                if let Err(error) = put(&self.admin, &path, &object).await {
                    self.failed(&path, &object, &error).await;
                    // Objects that were there before stay.
                    if let Some(before) = self.applied.remove(&path) {
                        wanted.insert(path, before);
                    }
                    continue;
                }
                changed.push(name_of(&object));
            }
            self.failing.remove(&path);
            wanted.insert(path, object);
        }
        self.failing.retain(|path| all.contains(path));
        self.backoff.plan(!self.failing.is_empty());
        for (path, object) in std::mem::replace(&mut self.applied, wanted) {
            let role = path.starts_with("/apis/");
            if role && !self.applied.contains_key(&path) {
                let _ = send(&self.admin, Method::DELETE, &path, "application/json", None).await;
                changed.push(format!("{} is gone", name_of(&object)));
            }
        }
        changed
    }

    /// An object was not taken. A failure that may pass is told once.
    async fn failed(&mut self, path: &str, object: &Value, error: &anyhow::Error) {
        let name = name_of(object);
        if !may_pass(error) {
            self.failing.remove(path);
            let message = format!("{name} is refused: {error:#}");
            return self.notice(Level::Error, message, Some(format!("correct it in {FOLDER}"))).await;
        }
        if self.failing.insert(path.to_owned()) {
            let message = format!("{name} is not applied yet: {error:#}");
            self.notice(Level::Warn, message, Some(AGAIN.to_owned())).await;
        }
    }

    /// A call was refused: which rule it wants, told once for each verb and namespace.
    async fn lacks(&mut self, refusal: MissingRight) {
        if self.rules.applies && self.is_allowed(&self.of(&refusal)).await {
            // The roles were fixed while the refusal was on its way.
            return;
        }
        let same = |known: &MissingRule| known.group == refusal.group && known.resource == refusal.resource;
        let is_known = |known: &MissingRule| same(known) && known.verbs.contains(&refusal.verb);
        let known = self.rules.lock().iter().any(is_known);
        let needed = if known {
            Vec::new()
        } else {
            // The charts say at once what the next calls would be refused for.
            let (rules, group, resource) =
                (self.rules.clone(), refusal.group.clone(), refusal.resource.clone());
            tokio::task::spawn_blocking(move || rules.needed(&group, &resource)).await.unwrap_or_default()
        };
        let news = {
            let mut missing = self.rules.lock();
            let index = missing.iter().position(same).unwrap_or_else(|| {
                missing.push(MissingRule { verbs: Vec::new(), namespaces: Vec::new(), ..self.of(&refusal) });
                missing.len() - 1
            });
            let rule = &mut missing[index];
            let new_verb = !rule.verbs.contains(&refusal.verb);
            if new_verb {
                rule.verbs.push(refusal.verb.clone());
                rule.at = Timestamp::now();
                let more = needed.iter().filter(|verb| !rule.verbs.contains(verb));
                let all: Vec<String> = rule.verbs.iter().chain(more).cloned().collect();
                rule.allow = opdev_generate::rbac::missing_rules::verbs(&all, &rule.resource);
                rule.message.clone_from(&refusal.message);
            }
            if !refusal.namespace.is_empty() && !rule.namespaces.contains(&refusal.namespace) {
                rule.namespaces.push(refusal.namespace.clone());
            }
            new_verb.then(|| (missing[index].clone(), missing.clone()))
        };
        let Some((rule, all)) = news else { return };
        self.events.emit(Event::RulesMissing { missing: all }).await;
        let MissingRule { role, file, .. } = &rule;
        let lines = rule.lines().join("\n");
        let hint =
            format!("missing in {role} ({file}); key A adds it, once you have seen the change:\n{lines}");
        self.notice(Level::Error, format!("forbidden: {}", rule.message), Some(hint)).await;
    }

    /// The rule that one refusal asks for.
    fn of(&self, refusal: &MissingRight) -> MissingRule {
        MissingRule {
            at: Timestamp::now(),
            verbs: vec![refusal.verb.clone()],
            group: refusal.group.clone(),
            resource: refusal.resource.clone(),
            namespaces: Some(refusal.namespace.clone()).filter(|name| !name.is_empty()).into_iter().collect(),
            message: refusal.message.clone(),
            allow: Vec::new(),
            role: format!("{} {}", self.home.kind, self.home.name),
            file: self.home.file.clone(),
        }
    }

    /// Forgets the rules that are missing no longer.
    async fn ask_again(&self) {
        let known = self.rules.lock().clone();
        let mut left = Vec::new();
        for missing in known {
            if !self.is_allowed(&missing).await {
                left.push(missing);
            }
        }
        let changed = {
            let mut missing = self.rules.lock();
            let changed = missing.len() != left.len();
            missing.clone_from(&left);
            changed
        };
        if changed {
            self.events.emit(Event::RulesMissing { missing: left }).await;
        }
    }

    async fn is_allowed(&self, missing: &MissingRule) -> bool {
        let account = &self.rules.account;
        let everywhere = [String::new()];
        let places = if missing.namespaces.is_empty() { &everywhere[..] } else { &missing.namespaces };
        for namespace in places {
            for verb in &missing.verbs {
                let question = opdev_generate::rbac::missing_rules::question(
                    &account.user(),
                    &account.groups(),
                    missing,
                    verb,
                    namespace,
                );
                let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
                match send(&self.admin, Method::POST, path, "application/json", Some(&question)).await {
                    Ok((answer, _)) if answer["status"]["allowed"] == true => {}
                    _ => return false,
                }
            }
        }
        true
    }
}

async fn read(root: &Path) -> Result<RoleFiles> {
    let root = root.to_owned();
    tokio::task::spawn_blocking(move || RoleFiles::read(&root)).await.context("reading the role files failed")
}

/// `ClusterRole manager-role`.
fn name_of(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// Applies one object. What a binding binds cannot be changed: then it is made anew.
async fn put(admin: &Client, path: &str, object: &Value) -> Result<()> {
    let uri = format!("{path}?fieldManager={OWN_MANAGER}&force=true");
    let apply = || send(admin, Method::PATCH, &uri, "application/apply-patch+yaml", Some(object));
    match apply().await {
        Err(error) if format!("{error:#}").contains("cannot change roleRef") => {
            send(admin, Method::DELETE, path, "application/json", None).await?;
            apply().await.map(|_| ())
        }
        other => other.map(|_| ()),
    }
}

/// On a real cluster somebody has to allow it.
async fn may_impersonate(admin: &Client, account: &Account, context: &str) -> Result<()> {
    let Account { namespace, name } = account;
    let question = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "impersonate", "resource": "serviceaccounts",
            "namespace": namespace, "name": name}}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let (answer, _) = send(admin, Method::POST, path, "application/json", Some(&question)).await?;
    if answer["status"]["allowed"] == true {
        return Ok(());
    }
    bail!(
        "the kubeconfig's user may not impersonate the ServiceAccount {namespace}/{name} on context {context}\n  why: \
         --as-serviceaccount sends the operator's calls with Impersonate-User, which takes the verb impersonate on \
         serviceaccounts\n  to do: have somebody bind you a role with this rule, or start without \
         --as-serviceaccount, or with --embedded\n    - apiGroups: [\"\"]\n      resources: [serviceaccounts]\n      \
         resourceNames: [{name}]\n      verbs: [impersonate]"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Method, Request, Response};
    use kube::client::Body;
    use std::convert::Infallible;
    use std::path::PathBuf;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/manager-role";

    /// An API server that takes everything, but no ClusterRole while it is `busy`; what is deleted is noted.
    fn server(busy: &Arc<AtomicBool>, deleted: &Arc<Mutex<Vec<String>>>) -> Client {
        let (busy, deleted) = (Arc::clone(busy), Arc::clone(deleted));
        let service = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().path().to_owned();
            let fails = busy.load(Ordering::SeqCst) && path == ROLE;
            if *request.method() == Method::DELETE {
                deleted.lock().unwrap().push(path);
            }
            let body = if fails {
                json!({"kind": "Status", "status": "Failure", "code": 500, "message": "etcd has no leader"})
            } else {
                json!({})
            };
            let mut response = Response::new(Body::from(body.to_string().into_bytes()));
            *response.status_mut() = if fails { 500 } else { 200 }.try_into().unwrap();
            std::future::ready(Ok::<_, Infallible>(response))
        });
        Client::new(service, "default")
    }

    fn files(rules: &str) -> RoleFiles {
        let mut files = RoleFiles::default();
        files.take(
            "config/rbac/role.yaml",
            &format!("kind: ClusterRole\nmetadata: {{name: manager-role}}\nrules: [{rules}]\n"),
        );
        files
    }

    #[tokio::test]
    async fn a_role_that_a_busy_server_did_not_take_is_applied_later_and_the_one_before_stays() {
        let (busy, deleted) = (Arc::new(AtomicBool::new(true)), Arc::default());
        let (events, mut told) = EventSink::channel(64);
        let (_refusals, refused) = mpsc::channel(1);
        let before = files("");
        let account = before.account("");
        let home = before.home(&account);
        let rules = Rules { root: PathBuf::new(), account, applies: true, missing: Arc::default() };
        let mut roles = RoleSync::new(rules, server(&busy, &deleted), events, refused, home);
        for _ in 0..2 {
            let changed = roles.apply(&before).await;
            assert!(!changed.iter().any(|name| name == "ClusterRole manager-role"), "{changed:?}");
        }
        let mut notices = Vec::new();
        while let Ok(event) = told.try_recv() {
            notices.extend(if let Event::Noticed(notice) = event { Some(notice) } else { None });
        }
        let [notice] = notices.as_slice() else { panic!("{notices:?}") };
        assert_eq!((notice.level, notice.hint.as_deref()), (Level::Warn, Some(AGAIN)), "said once");
        busy.store(false, Ordering::SeqCst);
        // A try is due.
        roles.backoff.due().await;
        assert_eq!(roles.apply(&before).await, ["ClusterRole manager-role"]);
        busy.store(true, Ordering::SeqCst);
        roles.apply(&files("{apiGroups: [apps], resources: [deployments], verbs: [get]}")).await;
        assert_eq!(*deleted.lock().unwrap(), [""; 0], "it serves as it was");
    }
}
