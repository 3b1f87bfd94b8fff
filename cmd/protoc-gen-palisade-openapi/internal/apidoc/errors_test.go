package apidoc_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func sprint(value any) string { return fmt.Sprint(value) }

// TestEveryHandlerWasAnalysed checks that reasons.tsv has exactly the RPCs. Otherwise run: make error-reasons
func TestEveryHandlerWasAnalysed(t *testing.T) {
	text, err := os.ReadFile("reasons.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var analysed, want []string
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		analysed = append(analysed, name)
	}
	for _, method := range methods() {
		want = append(want, string(method.FullName()))
	}
	slices.Sort(want)
	slices.Sort(analysed)
	if !slices.Equal(analysed, want) {
		for _, name := range want {
			if !slices.Contains(analysed, name) {
				t.Errorf("%s was not analysed: run make error-reasons", name)
			}
		}
		for _, name := range analysed {
			if !slices.Contains(want, name) {
				t.Errorf("%s is no RPC: run make error-reasons", name)
			}
		}
	}
}

// TestErrorsOfOperations checks the listed errors of operations of each kind.
func TestErrorsOfOperations(t *testing.T) {
	operations := byPath(ourDocument(t))
	for path, want := range map[string]string{
		"GET /api/v1/ping":                                          "429 500 503 504",
		"GET /api/v1/deployments/{}/findings":                       "400 401 404 429 500 503 504",
		"POST /api/v1/deployments/{}/scans/search":                  "400 401 404 408 413 429 500 503 504",
		"POST /api/agent/deployments/{}/scans/run":                  "400 401 403 404 408 413 429 500 503 504 507",
		"POST /api/scm/app_request":                                 "400 401 403 404 408 413 429 500 503 504 507",
		"PUT /api/policies/v2/deployments/{}/remediation-policies":  "400 401 403 404 408 409 413 428 429 500 503 504 507",
		"POST /api/permissions/v2/deployments/{}/teams":             "400 401 403 404 408 409 413 429 500 503 504 507",
		"DELETE /api/permissions/v2/deployments/{}/teams/{}":        "400 401 403 404 429 500 503 504 507",
		"POST /api/agent/deployments/{}/packagemanagerauthconfigs":  "400 401 403 404 408 409 413 429 500 503 504 507",
		"POST /api/reporting/{}/reports/median-open-age/by-product": "400 401 404 408 413 429 500 503 504",
	} {
		operation := operations[path]
		if operation == nil {
			t.Errorf("no operation %s", path)
			continue
		}
		var got []string
		for code := range operation.Responses.Map() {
			if code >= "400" {
				got = append(got, code)
			}
		}
		slices.Sort(got)
		if list := strings.Join(got, " "); list != want {
			t.Errorf("%s: %s, want %s", path, list, want)
		}
	}
}
