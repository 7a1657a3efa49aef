package @CONTROLLERS@

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	@ALIAS@ "@PACKAGE@"
)

var _ = Describe("@KIND@", func() {
	It("writes its message into a ConfigMap", func() {
		obj := &@ALIAS@.@KIND@{
			ObjectMeta: metav1.ObjectMeta{Name: "@LOWER@-test"@META_NAMESPACE@},
			Spec:       @ALIAS@.@KIND@Spec{Message: "hello"},
		}
		Expect(k8sClient.Create(ctx, obj)).To(Succeed())
		DeferCleanup(func() { Expect(k8sClient.Delete(ctx, obj)).To(Succeed()) })

		reconciler := &@KIND@Reconciler{Client: k8sClient, Scheme: k8sClient.Scheme()}
		_, err := reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
		Expect(err).NotTo(HaveOccurred())

		var configMap corev1.ConfigMap
		key := client.ObjectKey{Name: "@LOWER@-test-message", Namespace: "default"}
		Expect(k8sClient.Get(ctx, key, &configMap)).To(Succeed())
		Expect(configMap.Data).To(HaveKeyWithValue("message", "hello"))
		Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
		Expect(meta.IsStatusConditionTrue(obj.Status.Conditions, "Ready")).To(BeTrue())
	})
})
