package e2e

import (
	"os"
	"os/exec"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"@MODULE@/test/utils"
)

// The namespace of the manager.
const namespace = "@PROJECT@-system"

// TestE2E deploys the image that IMG names to the cluster of the current context, and looks at the manager there.
func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "End to end")
}

var _ = Describe("Manager", Ordered, func() {
	BeforeAll(func() {
		image := os.Getenv("IMG")
		Expect(image).NotTo(BeEmpty(), "IMG has to name the manager's image")
		_, err := utils.Run(exec.Command("make", "deploy", "IMG="+image))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() error {
			_, err := utils.Run(exec.Command("make", "undeploy", "ignore-not-found=true"))
			return err
		})
	})

	It("becomes available", func() {
		available := func(g Gomega) {
			_, err := utils.Run(exec.Command("kubectl", "wait", "deployment/@PROJECT@-controller-manager",
				"--for=condition=Available", "--namespace", namespace, "--timeout=5s"))
			g.Expect(err).NotTo(HaveOccurred())
		}
		Eventually(available, 3*time.Minute, time.Second).Should(Succeed())

		// +kubebuilder:scaffold:e2e-metrics-webhooks-readiness
	})

	// +kubebuilder:scaffold:e2e-webhooks-checks
})
