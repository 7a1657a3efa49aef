require "kubeclient"
require "timeout"

config = Kubeclient::Config.read(ARGV[0])
context = config.context
client = lambda do |path, version|
  Kubeclient::Client.new(context.api_endpoint + path, version, ssl_options: context.ssl_options, auth_options: context.auth_options)
end
CORE = client.call("/api", "v1")
APPS = client.call("/apis/apps", "v1")
CRDS = client.call("/apis/apiextensions.k8s.io", "v1")
NS = "ruby"
$done = $failed = 0

def step(name)
  $done += 1
  wrong = Timeout.timeout(30) { yield }
  wrong = nil if wrong == true
  $failed += 1 if wrong
  puts(wrong ? "FAIL  #{name}: #{wrong.inspect}" : "ok    #{name}")
rescue StandardError => error
  $failed += 1
  puts "FAIL  #{name}: #{error.class} #{error.message}"
end

def expect(found, wanted)
  found == wanted || "found #{found.inspect}, wanted #{wanted.inspect}"
end

def until_true(text)
  200.times do
    return true if yield
    sleep 0.05
  end
  text
end

def map(name, value)
  Kubeclient::Resource.new(metadata: { name: name, namespace: NS, labels: { made: "here" } }, data: { key: value })
end

step("discovery") { CORE.discover; expect(CORE.respond_to?(:get_config_maps), true) }
step("create a namespace") { CORE.create_namespace(Kubeclient::Resource.new(metadata: { name: NS })); true }
step("create") { expect(CORE.create_config_map(map("one", "1")).data[:key], "1") }
step("create again: 409") do
  CORE.create_config_map(map("one", "1"))
  "no conflict"
rescue Kubeclient::HttpError => error
  expect(error.error_code, 409)
end
step("list") { expect(CORE.get_config_maps(namespace: NS, label_selector: "made=here").size, 1) }
step("list in pieces") do
  5.times { |at| CORE.create_config_map(map("piece-#{at}", at.to_s)) }
  found, following = 0, nil
  loop do
    list = CORE.get_config_maps(namespace: NS, label_selector: "made=here", limit: 2, continue: following)
    found += list.size
    following = list.continue
    break if list.last?
  end
  expect(found, 6)
end
step("watch") do
  version = CORE.get_config_maps(namespace: NS).resourceVersion
  watcher = CORE.watch_config_maps(namespace: NS, resource_version: version)
  seen = []
  thread = Thread.new do
    watcher.each do |notice|
      seen << notice.type
      break if notice.type == "DELETED"
    end
  end
  CORE.create_config_map(map("watched", "1"))
  CORE.update_config_map(map("watched", "2"))
  CORE.delete_config_map("watched", NS)
  thread.join(10)
  watcher.finish
  expect(seen, %w[ADDED MODIFIED DELETED])
end
step("strategic merge patch") { expect(CORE.patch_config_map("one", { data: { key: "strategic" } }, NS).data[:key], "strategic") }
step("merge patch") { expect(CORE.merge_patch_config_map("one", { data: { key: "merge" } }, NS).data[:key], "merge") }
step("JSON patch") do
  expect(CORE.json_patch_config_map("one", [{ op: "replace", path: "/data/key", value: "json" }], NS).data[:key], "json")
end
step("apply") do
  # A hash: of a Kubeclient::Resource, `to_json` is the text of the Ruby object.
  one = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "one", namespace: NS }, data: { key: "apply" } }
  expect(CORE.apply_config_map(one, field_manager: "ruby").data[:key], "apply")
end
step("a workload gets ready") do
  APPS.create_deployment(Kubeclient::Resource.new(
    metadata: { name: "web", namespace: NS },
    spec: { replicas: 2, selector: { matchLabels: { app: "web" } },
            template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "web", image: "nginx" }] } } }
  ))
  until_true("never") { APPS.get_deployment("web", NS).status.readyReplicas == 2 }
end
step("a CRD and its objects") do
  CRDS.create_custom_resource_definition(Kubeclient::Resource.new(
    metadata: { name: "gems.example.com" },
    spec: { group: "example.com", scope: "Namespaced", names: { kind: "Gem", plural: "gems", singular: "gem", listKind: "GemList" },
            versions: [{ name: "v1", served: true, storage: true, subresources: { status: {} },
                         schema: { openAPIV3Schema: { type: "object", properties: {
                           spec: { type: "object", properties: { size: { type: "integer", minimum: 1 } } },
                           status: { type: "object", "x-kubernetes-preserve-unknown-fields": true } } } } }] }
  ))
  gems = client.call("/apis/example.com", "v1")
  served = until_true("not served") do
    gems.discover
    gems.respond_to?(:get_gems)
  rescue Kubeclient::ResourceNotFoundError
    false
  end
  next served unless served == true
  gem = ->(name, size) { Kubeclient::Resource.new(metadata: { name: name, namespace: NS }, spec: { size: size }) }
  gems.create_gem(gem.call("a", 1))
  begin
    gems.create_gem(gem.call("b", 0))
    next "size 0 was taken"
  rescue Kubeclient::HttpError => error
    next error.message unless error.error_code == 422
  end
  gems.delete_gem("a", NS)
  expect(gems.get_gems(namespace: NS).size, 0)
end
step("a missing object: 404") do
  CORE.get_config_map("nothing", NS)
  "found"
rescue Kubeclient::ResourceNotFoundError => error
  expect(error.message, 'configmaps "nothing" not found')
end
step("delete") { expect(CORE.delete_config_map("one", NS).status, "Success") }
step("delete with options") do
  CORE.delete_config_map("piece-0", NS, delete_options: Kubeclient::Resource.new(propagationPolicy: "Background"))
  expect(CORE.get_config_maps(namespace: NS, label_selector: "made=here").size, 4)
end
step("delete the namespace") do
  CORE.delete_namespace(NS)
  until_true("still there after 10 s") do
    CORE.get_namespace(NS)
    false
  rescue Kubeclient::ResourceNotFoundError
    true
  end
end
puts "#{$done - $failed} passed, #{$failed} failed"
exit($failed.zero? ? 0 : 1)
