package services_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
)

// sboms asks for the state of an SBOM, which costs the same in all states.
func (f *flows) sboms(t *testing.T) {
	t.Helper()
	id, err := f.server.Store.Reader.Project.Query().Order(ent.Asc(project.FieldID)).FirstID(f.inside(t))
	if err != nil {
		t.Fatal(err)
	}
	var started struct{ TaskToken string }
	target := fmt.Sprintf("/api/v1/deployments/%d/sbom/export", f.tenant.DeploymentID)
	f.do(t, http.MethodPost, target, fmt.Sprintf(`{"repositoryId":"%d"}`, id), &started)
	f.spend(t, supplychainv1.SbomsService_GetSbomExport_FullMethodName, "", http.MethodGet, target+"/"+started.TaskToken, "", nil)
}
