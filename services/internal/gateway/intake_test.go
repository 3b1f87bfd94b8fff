package gateway

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestIntake(t *testing.T) {
	const most = 1 << 20
	in := newIntake(most)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	body := func(size int64) *share {
		t.Helper()
		s := &share{intake: in}
		for _, here := range []int64{size / 2, size} {
			if err := s.grow(here); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	var bodies []*share
	for range receivedBodies {
		bodies = append(bodies, body(most))
	}
	if err := (&share{intake: in}).grow(most); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one body too many: %v", err)
	}
	for _, s := range bodies[:decodedBodies] {
		if err := s.turn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := bodies[decodedBodies].turn(ended); err == nil {
		t.Error("more are decoded at once than there should be")
	}
	if err := body(smallBody).turn(ended); err != nil {
		t.Errorf("a small body waits: %v", err)
	}
	bodies[0].release()
	if err := bodies[decodedBodies].turn(t.Context()); err != nil {
		t.Errorf("a body that ended leaves no room: %v", err)
	}
	for _, s := range bodies {
		s.release()
		s.release() // twice is as good as once
	}
	if !in.received.TryAcquire(receivedBodies*most) || !in.decoding.TryAcquire(in.most) {
		t.Error("a share was not given back")
	}
}
