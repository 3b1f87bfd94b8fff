package services_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/heldclose"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
)

// closes holds the closes of many findings, and confirms or rejects them.
func (f *flows) closes(t *testing.T) {
	base := "/api/v1/deployments/" + f.tenant.Slug + "/"
	f.do(t, http.MethodPatch, base+"close-limits", `{"limits":{"all_of":1}}`, nil)
	for _, c := range []struct{ verb, rpc string }{
		{"confirm", scansv1.HeldClosesService_ConfirmHeldCloses_FullMethodName}, {"reject", scansv1.HeldClosesService_RejectHeldCloses_FullMethodName},
	} {
		report := func(results string) []byte {
			return []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"opengrep"}},"invocations":[{"executionSuccessful":true}],"results":[` + results + `]}]}`)
		}
		f.server.Upload(t, "acme/"+c.verb, "main", report(f.each(`{"ruleId":"r","message":{"text":"m"},"locations":[{"physicalLocation":{
			"artifactLocation":{"uri":"a#.py"},"region":{"startLine":1}}}]}`, ",")))
		f.server.Upload(t, "acme/"+c.verb, "main", report(""))
		id := f.server.Store.Reader.HeldClose.Query().Where(heldclose.State("pending")).Order(ent.Desc(heldclose.FieldID)).FirstIDX(f.inside(t))
		var answer struct{ Closed, Kept int64 }
		f.spend(t, c.rpc, "", http.MethodPost, fmt.Sprintf("%sheld-closes/%d/%s", base, id, c.verb), "{}", &answer)
		if answer.Closed+answer.Kept != f.rows {
			t.Errorf("%s: %+v, want %d", c.verb, answer, f.rows)
		}
	}
	f.do(t, http.MethodPatch, base+"close-limits", `{"reset":true}`, nil)
}
