package chain_test

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/audit"
)

// When the limit of pending entries is reached, calls that need an entry are refused before they do anything, and reads
// are answered. After the database has stored the entries, all calls work again.
func TestAuditWithoutRoom(t *testing.T) {
	f := newFixture(t)
	var reached atomic.Int64
	f.handlers.update = func(context.Context, *projectsv1.UpdateProjectRequest) error { reached.Add(1); return nil }
	call := audit.Call{Actor: audit.Actor{Kind: "token", ID: 1, Name: "x"}, Method: "/x"}
	for !f.trail.Full() {
		if !f.trail.AppendLater(t.Context(), call, f.acme, codes.PermissionDenied, syscall.ENOSPC) {
			t.Fatal("an entry is lost")
		}
	}
	f.each(func(t *testing.T, conn grpc.ClientConnInterface, _ string) {
		wantCode(t, goodUpdate(as(t.Context(), f.admin), conn), codes.Unavailable)
		must(t, getProject(as(t.Context(), f.admin), conn, "acme"))
	})
	if n := reached.Load(); n != 0 {
		t.Errorf("%d calls were made that would leave no entry", n)
	}
	for end := time.Now().Add(time.Minute); f.trail.Full(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the entries are not written")
		}
	}
	f.each(func(t *testing.T, conn grpc.ClientConnInterface, _ string) {
		wantCode(t, goodUpdate(as(t.Context(), f.admin), conn), codes.OK)
	})
}
