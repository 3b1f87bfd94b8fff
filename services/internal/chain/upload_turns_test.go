package chain

import "testing"

// Even a node with one processor has two slots: a report that takes minutes to read leaves the other one free.
func TestUploadsOfOneProcessor(t *testing.T) {
	if g := newUploadGate(UploadLimits{}, func() {}); g.limits.AtOnce < 2 {
		t.Errorf("there are %d places", g.limits.AtOnce)
	}
}

// A deployment cannot fill the queue of another.
func TestUploadQueueIsOfOneDeployment(t *testing.T) {
	refused := 0
	g := newUploadGate(UploadLimits{AtOnce: 2, Queue: 3}, func() { refused++ })
	for range 100 {
		if err := g.arrive(1); err != nil && refused == 0 {
			t.Error("refused without being counted")
		}
	}
	if refused != 96 {
		t.Errorf("%d of 100 were refused, want all but the one in work and three that wait", refused)
	}
	if err := g.arrive(2); err != nil {
		t.Errorf("another deployment: %v", err)
	}
}
