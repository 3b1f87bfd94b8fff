package services_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
)

// exports exports all findings, and reads the result of the task and the file.
func (f *flows) exports(t *testing.T) {
	var started struct{ TaskTokenJwt string }
	f.do(t, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/issues/export", f.tenant.DeploymentID), "{}", &started)
	task := "/api/tasks/v2/" + started.TaskTokenJwt
	var result struct {
		Status     string
		TaskResult struct{ ResultString string }
	}
	for result.Status != "TASK_STATUS_COMPLETED" {
		if f.do(t, http.MethodGet, task, "", &result); result.Status == "TASK_STATUS_FAILED" || t.Context().Err() != nil {
			t.Fatalf("the export ended as %+v", result)
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.spend(t, platformv1.TasksService_GetTaskResult_FullMethodName, "", http.MethodGet, task, "", &result)
	var file struct {
		DownloadURL string `json:"downloadUrl"`
	}
	if err := json.Unmarshal([]byte(result.TaskResult.ResultString), &file); err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(file.DownloadURL)
	if err != nil {
		t.Fatal(err)
	}
	f.spend(t, findingsv1.ExportsService_DownloadExport_FullMethodName, "", http.MethodGet, address.RequestURI(), "", nil)
}
