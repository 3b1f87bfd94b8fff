package gateway

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/services/internal/access"
)

func TestIntake(t *testing.T) {
	const most = 1 << 20
	in := newIntake(most)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	body := func(caller, size int64) *share {
		t.Helper()
		s := &share{intake: in, caller: bodyCaller{access.KindToken, caller}}
		for _, here := range []int64{size / 2, size} {
			if err := s.grow(here); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	var bodies []*share
	tooMany := func(what string, caller int64) {
		t.Helper()
		if err := (&share{intake: in, caller: bodyCaller{access.KindToken, caller}}).grow(most); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("one body too many %s: %v", what, err)
		}
	}
	for i := range int64(receivedBodies) {
		bodies = append(bodies, body(i/callerBodies, most))
		if len(bodies) == callerBodies {
			tooMany("of one caller", 0)
		}
	}
	tooMany("of all", receivedBodies)
	for _, s := range bodies[:decodedBodies] {
		if err := s.turn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := bodies[decodedBodies].turn(ended); err == nil {
		t.Error("more are decoded at once than there should be")
	}
	if err := body(0, smallBody).turn(ended); err != nil {
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
	if in.received != 0 || len(in.byCaller) > 0 || !in.decoding.TryAcquire(in.mostDecoded) {
		t.Error("a share was not given back")
	}
}
