package chain

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/gate"
)

// A write that readers may make (marking notifications as seen) waits for the writer without holding a slot of a read.
// Otherwise a few of them that wait for a long import would block all reads.
func TestWritesOfReadersHoldNoPlace(t *testing.T) {
	link := limitReads(readGates{reports: gate.New(4, gate.Share(1)), others: gate.New(4, gate.Share(1))})
	call := func(deployment int64, kind optionsv1.Audit, handler grpc.UnaryHandler) error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		ctx = context.WithValue(ctx, callKey{}, &call{
			rule:  &optionsv1.MethodRule{Permission: optionsv1.Permission_PERMISSION_READ, Audit: kind},
			grant: &access.Grant{DeploymentID: deployment},
		})
		_, err := link.Unary(ctx, nil, &grpc.UnaryServerInfo{}, handler)
		return err
	}
	const writers = 8
	begun, end, errs := make(chan struct{}, writers), make(chan struct{}), make(chan error, writers)
	for deployment := range int64(writers) {
		go func() {
			errs <- call(deployment+1, optionsv1.Audit_AUDIT_ALWAYS, func(ctx context.Context, _ any) (any, error) {
				begun <- struct{}{}
				select {
				case <-end:
				case <-ctx.Done():
				}
				return nil, ctx.Err()
			})
		}()
	}
	for range writers {
		select {
		case <-begun:
		case err := <-errs:
			t.Fatal("a call that writes waited for a place:", err)
		}
	}
	err := call(writers+1, optionsv1.Audit_AUDIT_UNSPECIFIED, func(context.Context, any) (any, error) { return nil, nil })
	if err != nil {
		t.Error("a read waited for writes:", err)
	}
	close(end)
	for range writers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// Reports may wait for a replica that hangs. They have their own slots, so lists are not blocked.
func TestReportsHoldNoPlaceOfLists(t *testing.T) {
	gates := readGates{reports: gate.New(2, gate.Share(1)), others: gate.New(2, gate.Share(1))}
	for deployment := range int64(2) {
		if err := gates.of("/palisade.reporting.v1.ReportsService/GetFindingsReport").Enter(t.Context(), deployment+1); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := gates.of("/palisade.findings.v1.FindingsService/ListFindings").Enter(ctx, 3); err != nil {
		t.Error("a list waits for reports:", err)
	}
}
