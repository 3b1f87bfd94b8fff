package apitest

import (
	"context"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/tenant"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
)

// checkFacts makes sure that the columns which contents repeat are what the rows hold, whatever a test did to them. Rows
// that a test wrote itself may have none.
func (s *Server) checkFacts(t testing.TB) {
	t.Helper()
	rows, err := s.Store.Reader.Finding.Query().Order(ent.Desc(finding.FieldID)).Limit(2000).All(tenant.System(context.WithoutCancel(t.Context())))
	if err != nil {
		t.Errorf("read the findings: %v", err)
	}
	for _, row := range rows {
		content, err := blob.Decode(row.Content)
		if err != nil || content.GetFacts() == nil {
			continue
		}
		want := &storev1.FindingFacts{
			ProjectId: row.ProjectID, RuleId: row.RuleID, FirstSeenScanId: row.FirstSeenScanID, CreatedAt: row.CreatedAt, Ref: row.Ref, Severity: row.Severity,
		}
		if !proto.Equal(content.GetFacts(), want) {
			t.Errorf("content of finding %d repeats %v, want %v", row.ID, content.GetFacts(), want)
		}
	}
}
