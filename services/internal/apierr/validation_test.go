package apierr_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/apierr"
)

func TestValidationTexts(t *testing.T) {
	long := strings.Repeat("x", 300)
	many := make([]string, 101)
	for i := range many {
		many[i] = "t"
	}
	for name, test := range map[string]struct {
		request proto.Message
		reason  string
		want    string
	}{
		"range of a page size": {&findingsv1.ListFindingsRequest{PageSize: proto.Int64(5000)}, "PAGE_SIZE_OUT_OF_RANGE", "page_size must be between 100 and 3000, got 5000"},
		"range of a limit":     {&scansv1.SearchScansRequest{Limit: -1}, "PAGE_SIZE_OUT_OF_RANGE", "limit must be between 0 and 500, got -1"},
		"half a range":         {&findingsv1.ListFindingsRequest{Page: -1}, "INVALID_ARGUMENT", "page must be at least 0, got -1"},
		"word":                 {&findingsv1.ListFindingsRequest{IssueType: []string{"x"}}, "INVALID_ARGUMENT", `issue_type[0] must be one of sast, sca, ai_sast; got "x"`},
		"word in a list":       {&findingsv1.ListFindingsRequest{Exposures: []string{"unknown", "a\nb"}}, "INVALID_ARGUMENT", `exposures[1] must be one of reachable, always_reachable, conditionally_reachable, unreachable, unknown; got "a\nb"`},
		"long word":            {&findingsv1.ListFindingsRequest{Confidence: []string{long}}, "INVALID_ARGUMENT", `confidence[0] must be one of low, medium, high; got "` + long[:100] + `…"`},
		"not finite":           {&findingsv1.ListFindingsRequest{Since: math.NaN()}, "INVALID_ARGUMENT", "since must be a finite number, got NaN"},
		"too long":             {&projectsv1.UpdateProjectRequest{PrimaryBranch: long}, "INVALID_ARGUMENT", "primary_branch must have at most 255 characters, got 300"},
		"too many":             {&projectsv1.AddProjectTagsRequest{Tags: many}, "INVALID_ARGUMENT", "tags must have at most 100 items, got 101"},
		"empty item":           {&projectsv1.AddProjectTagsRequest{Tags: []string{""}}, "INVALID_ARGUMENT", "tags[0] must not be empty"},
		"not supported":        {&findingsv1.BulkTriageRequest{IssueType: "sast", NewNote: "n", Ruleset: []string{"a"}}, "INVALID_ARGUMENT", "ruleset is not supported here: leave it out"},
		"constant":             {&findingsv1.BulkTriageRequest{IssueType: "sast", NewNote: "n", ProOnly: true}, "INVALID_ARGUMENT", "pro_only must be false, got true"},
		"enum":                 {&reportingv1.ReportFilters{TimeBucketSize: 99}, "INVALID_ARGUMENT", "timeBucketSize must be one of TIME_BUCKET_SIZE_DAY, TIME_BUCKET_SIZE_WEEK, TIME_BUCKET_SIZE_MONTH; got 99"},
		"enum in a list":       {&findingsv1.ListSecretsRequest{Status: []findingsv1.FindingStatus{99}}, "INVALID_ARGUMENT", "status[0] must be one of the values of the contract; got 99"},
		"enum not given":       {&workflowsv1.TriageIssueRequest{}, "INVALID_ARGUMENT", "triageState is required: one of TRIAGE_STATE_IGNORED, TRIAGE_STATE_OPEN, TRIAGE_STATE_REOPENED, TRIAGE_STATE_REVIEWING, TRIAGE_STATE_FIXING, TRIAGE_STATE_PROVISIONALLY_IGNORED, TRIAGE_STATE_FIXED"},
		"nested":               {&scansv1.UploadReportRequest{Target: &scansv1.UploadReportTarget{Project: "a", Ref: "b", ContentEncoding: "br"}}, "INVALID_ARGUMENT", `target.contentEncoding must be one of gzip, identity; got "br"`},
		"rule of a field":      {&scansv1.UploadReportRequest{Target: &scansv1.UploadReportTarget{Project: "a", Ref: "b c"}}, "INVALID_ARGUMENT", `target.ref: must have no spaces and no control characters, such as main or refs/pull/7/merge, got "b c"`},
		"rule of the request":  {&findingsv1.BulkTriageRequest{IssueType: "sast"}, "INVALID_ARGUMENT", "one of new_triage_state and new_note is required"},
		"range of a time":      {&reportingv1.TimePeriod{Until: &timestamppb.Timestamp{Seconds: 4102444800}}, "INVALID_ARGUMENT", "until must be at least 1970-01-01T00:00:00Z and less than 2100-01-01T00:00:00Z, got 2100-01-01T00:00:00Z"},
		"word or nothing":      {&reportingv1.GetReportFindingsRequest{DeploymentId: 1, ReportType: 1, GuardrailsState: "x"}, "INVALID_ARGUMENT", `guardrailsState must be one of silenced, open, fixed, ignored, provisionallyIgnored; got "x"`},
		"two of them":          {&findingsv1.ListFindingsRequest{Page: -1, Status: []string{"x"}}, "INVALID_ARGUMENT", `page must be at least 0, got -1; status[0] must be one of open, fixed, ignored, reviewing, fixing, provisionally_ignored; got "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			var invalid *protovalidate.ValidationError
			if err := protovalidate.Validate(test.request); !errors.As(err, &invalid) {
				t.Fatalf("it is valid: %v", err)
			}
			err := apierr.Validation(invalid, test.request.ProtoReflect().Descriptor())
			if got := apierr.ReasonName(apierr.ReasonOf(err)); got != test.reason {
				t.Errorf("reason %s", got)
			}
			var own *apierr.Error
			if !errors.As(err, &own) || own.GRPCStatus().Message() != test.want {
				t.Errorf("got  %s\nwant %s", own.GRPCStatus().Message(), test.want)
			}
			// Without the descriptor of the request, only messages above the field have other names.
			if !strings.Contains(test.want, ".") && apierr.HTTPStatus(apierr.Map(invalid)) == 400 {
				if !errors.As(apierr.Map(invalid), &own) || own.GRPCStatus().Message() != test.want {
					t.Errorf("Map: got %s", own.GRPCStatus().Message())
				}
			}
		})
	}
}

func TestValidationListsNotTooMany(t *testing.T) {
	request := &findingsv1.ListFindingsRequest{Severities: make([]string, 50)}
	err := apierr.Map(protovalidate.Validate(request))
	body := string(apierr.HTTPBody(err, ""))
	if !strings.Contains(body, "; and 40 more") || strings.Contains(body, "severities[10]") {
		t.Error(body)
	}
}
