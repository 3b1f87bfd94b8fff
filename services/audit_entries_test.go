package services_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// isAudited interprets the rule as the option documents it.
func isAudited(rule *optionsv1.MethodRule) bool {
	if rule.GetAudit() != optionsv1.Audit_AUDIT_UNSPECIFIED {
		return rule.GetAudit() == optionsv1.Audit_AUDIT_ALWAYS
	}
	return rule.GetPermission() >= optionsv1.Permission_PERMISSION_TRIAGE
}

// TestOneAuditEntryPerCall calls every RPC as an administrator and as a read-only user, and counts the entries: one for
// each call that could change something, with the caller's code, and none for any other.
func TestOneAuditEntryPerCall(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		// The first read of the catalog stores the shipped workflows, which adds an entry.
		s.Get(t, fmt.Sprintf("/api/workflows/v1/deployments/%d/registry", s.DeploymentID))
		s.Get(t, "/c/auto") // and the first read of the rules
		audited := 0
		for i, rpc := range operations() {
			if rpc.rule.GetPermission() == optionsv1.Permission_PERMISSION_PUBLIC {
				continue // callers are anonymous unless the handler authenticates them (audit.Begin)
			}
			for who, role := range map[string]access.Role{"administrator": access.RoleAdmin, "reader": access.RoleReadOnly} {
				credential := newCredential(t, s, rpc, role, fmt.Sprintf("%s-%d", who, i))
				name := who + "-" + string(rpc.descriptor.Name())
				code := callNamed(t, s, rpc, credential, name)
				rows := entriesOf(t, s, name)
				switch {
				case !isAudited(rpc.rule):
					if len(rows) != 0 {
						t.Errorf("%s by the %s changes nothing, but has %d entries", rpc.name, who, len(rows))
					}
				case len(rows) != 1:
					t.Errorf("%s by the %s: %s, with %d entries, want 1", rpc.name, who, code, len(rows))
				case rows[0].Code != code || rows[0].Method != rpc.name:
					t.Errorf("%s by the %s: %s, but its entry says %s %s", rpc.name, who, code, rows[0].Method, rows[0].Code)
				default:
					audited++
				}
			}
		}
		if audited < 20 {
			t.Errorf("only %d entries were looked at", audited)
		}
	})
}

// newCredential creates one for each call: denied attempts of one credential are throttled.
func newCredential(t *testing.T, s *apitest.Server, rpc operation, role access.Role, name string) string {
	t.Helper()
	if slices.Contains(rpc.rule.GetSchemes(), optionsv1.Scheme_SCHEME_WEB_TOKEN) {
		return s.AddToken(t, s.Tenant, access.TokenSpec{Name: name, Role: role})
	}
	return s.AddUser(t, s.Tenant, name+"@acme.test", role)
}

// callNamed calls an RPC with a request id and returns the code.
func callNamed(t *testing.T, s *apitest.Server, rpc operation, credential, id string) string {
	t.Helper()
	request := dynamicpb.NewMessage(rpc.descriptor.Input())
	fields := rpc.descriptor.Input().Fields()
	if f := fields.ByName("deployment_slug"); f != nil {
		request.Set(f, protoreflect.ValueOfString(s.Slug))
	}
	if f := fields.ByName("deployment_id"); f != nil {
		request.Set(f, protoreflect.ValueOfInt64(s.DeploymentID))
	}
	ctx := metadata.AppendToOutgoingContext(s.Context(t, credential), "x-request-id", id)
	return status.Code(call(ctx, s.Conn, rpc, request)).String()
}

func entriesOf(t *testing.T, s *apitest.Server, requestID string) []*ent.AuditEntry {
	t.Helper()
	rows, err := s.Store.Reader.AuditEntry.Query().Where(auditentry.RequestID(requestID)).All(s.System(t))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
