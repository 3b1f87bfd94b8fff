package intake_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/intake"
)

func TestBudget(t *testing.T) {
	const total, body = 32 << 20, 4 << 20
	budget := intake.New(total, 1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	share := func(caller int64) *intake.Share {
		return budget.Share(intake.Caller{Kind: access.KindToken, ID: caller}, intake.Limits{})
	}
	unauthenticated := func(address string) *intake.Share {
		return budget.Share(intake.Caller{Address: address}, intake.Limits{})
	}
	full := func(what string, s *intake.Share, size int64) {
		t.Helper()
		if err := s.Receive(size); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("too much %s: %v", what, err)
		}
	}
	var shares []*intake.Share
	for i := range int64(8) {
		s := share(i / 4)
		for _, here := range []int64{body / 2, body, body / 2} { // a lower number than already reserved costs nothing
			if err := s.Receive(here); err != nil {
				t.Fatal(err)
			}
		}
		if shares = append(shares, s); i == 3 {
			full("of one caller", share(0), body)
		}
	}
	full("of all", share(9), body)
	if err := share(9).Receive(intake.Small); err != nil {
		t.Errorf("large requests keep out a small one: %v", err)
	}
	full("of unauthenticated callers, where there is no room", unauthenticated("192.0.2.1"), 1)
	if err := share(9).Receive(total); apierr.ReasonOf(err) != errorsv1.Reason_REASON_BODY_TOO_LARGE {
		t.Errorf("a request that can never have room: %v", err)
	}
	full("of small ones of one caller", share(0), 1)
	err := shares[0].Decode(t.Context(), func() error {
		if err := shares[1].Decode(ended, func() error { return nil }); err == nil {
			t.Error("more is decoded at once than there should be")
		}
		return share(9).Decode(ended, func() error { return nil }) // a small request does not wait
	})
	if err != nil {
		t.Error(err)
	}
	if err := shares[1].Decode(t.Context(), func() error { return nil }); err != nil {
		t.Errorf("a request that was decoded leaves no room: %v", err)
	}
	for _, s := range shares {
		s.Release()
		s.Release() // releasing twice is safe
	}
	one := unauthenticated("192.0.2.1")
	if err := one.Receive(total / 16); err != nil {
		t.Error(err)
	}
	full("of one address", unauthenticated("192.0.2.1"), 1)
	if err := unauthenticated("192.0.2.2").Receive(1); err != nil {
		t.Errorf("another address: %v", err)
	}
	one.Release()
	if used := budget.Used(); used != intake.Small+1 { // the small request, and the other address
		t.Errorf("%d bytes were not given back", used)
	}
}
