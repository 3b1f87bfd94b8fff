package services_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// TestPlans calls every RPC except streams: reads without and with each filter, the lists of findings with each pair of
// filters, and writes once. Tables are large enough for the planner to choose as in a large installation. No statement
// scans a whole table, with or without statistics, or needs to sort rows that grow with every scan, and each names the
// deployment.
func TestPlans(t *testing.T) {
	testrun.Deep(t) // walks all plans
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s, seen := apitest.StartRecorded(t, on)
		ours := newFilling(t, s, "ours", 1, 500)
		newFilling(t, s, "theirs", 2, 4500)
		ours.fillFindings(t, 20_000)
		s.RefreshStatistics(t)
		by, explained := planners(t, s), map[string]bool{}
		for _, rpc := range inOrder(operations()) {
			if rpc.descriptor.IsStreamingClient() || rpc.descriptor.IsStreamingServer() {
				continue
			}
			var requests map[string]*dynamicpb.Message
			if onlyReads(rpc) {
				requests = ours.lists(t, rpc)
			} else {
				few := *ours // few enough that PostgreSQL looks each up in tables of this size
				few.rows = 50
				requests = map[string]*dynamicpb.Message{"what it takes": few.request(t, rpc)}
			}
			answered, last := 0, ""
			// In order, because only the first statement of a shape is explained, and plans depend on its values.
			for _, what := range slices.Sorted(maps.Keys(requests)) {
				seen.Take("")
				answer, _ := ours.call(t, rpc, requests[what])
				last = answer.Message()
				if answer.Code() == codes.OK {
					answered++
				} else if answer.Code() == codes.Internal || answer.Code() == codes.Unknown {
					t.Errorf("%s with %s: %v", rpc.name, what, answer.Message())
				}
				for _, statement := range seen.Take(rpc.name) {
					shape := shapeOf(statement.Text)
					if !explained[shape] {
						explained[shape] = true
						requireGoodPlan(t, s, by, rpc.name+" with "+what, statement)
					}
				}
			}
			if answered == 0 && budgets[rpc.name].code == codes.OK {
				t.Errorf("%s: no request was answered: %s", rpc.name, last)
			}
		}
		if len(explained) < 400 {
			t.Errorf("only %d different statements were seen", len(explained))
		}
	})
}

// reads matches the names of RPCs that change nothing, although their method may be POST.
var reads = regexp.MustCompile(`/(Get|List|Search|Find|Count|Check|LookUp|DryRun)[A-Z]`)

// onlyReads reports that an RPC changes nothing.
func onlyReads(rpc operation) bool { return rpc.method == "GET" || reads.MatchString(rpc.name) }

// parameters matches the parameters of a statement, with lists of any length.
var parameters = regexp.MustCompile(`(\?|\$\d+)(, (\?|\$\d+))*`)

func shapeOf(text string) string { return parameters.ReplaceAllString(text, "?") }

// fillFindings stores findings with a realistic distribution of values.
func (f *filling) fillFindings(t *testing.T, rows int) {
	t.Helper()
	err := f.server.Store.Write(f.server.System(t), func(ctx context.Context, tx *ent.Tx) error {
		return f.server.Store.Exec(ctx, tx, fmt.Sprintf(findingsSQL, rows), f.tenant.DeploymentID, f.base+1, f.base+1, f.base+1, []byte{})
	})
	if err != nil {
		t.Fatal(err)
	}
}

const findingsSQL = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
INSERT INTO findings (deployment_id, project_id, rule_id, first_seen_scan_id, ref, tool, analysis_category, fingerprint, issue_type,
	severity, state, triage_state, status, triage_reason, policy_mode, autotriage_verdict, component_tag, exposure, transitivity, package,
	advisory, epss_probability, malicious, click_to_fix_state, validation_state, historical, file_path,
	created_at, relevant_since, state_updated_at, content_hash, content)
SELECT CAST(? AS BIGINT), CAST(? AS BIGINT) + i %% 60, CAST(? AS BIGINT) + i %% 400, CAST(? AS BIGINT) + i / 100,
	CASE i %% 3 WHEN 0 THEN 'refs/heads/main' ELSE 'refs/pull/' || (i %% 40) END, 'test', '', 'print-' || (i / 40),
	CASE i %% 7 / 2 WHEN 0 THEN 'sast' WHEN 1 THEN 'sca' WHEN 2 THEN 'secrets' ELSE 'ai_sast' END,
	CASE i %% 20 WHEN 0 THEN 'critical' WHEN 1 THEN 'high' WHEN 2 THEN 'medium' ELSE 'low' END,
	CASE WHEN i %% 90 = 3 THEN 'fixed' ELSE 'unresolved' END, CASE WHEN i %% 90 = 6 THEN 'ignored' ELSE 'untriaged' END,
	CASE i %% 90 WHEN 3 THEN 'fixed' WHEN 6 THEN 'ignored' ELSE 'open' END, CASE i %% 90 WHEN 6 THEN 'acceptable_risk' END,
	CASE i %% 50 WHEN 0 THEN 'rule-board-block' END, CASE i %% 50 WHEN 1 THEN 'true_positive' END, CASE i %% 50 WHEN 2 THEN 'payments' END,
	CASE WHEN i %% 3 = 1 THEN CASE i %% 50 WHEN 3 THEN 'reachable' ELSE 'unknown' END END,
	CASE WHEN i %% 3 = 1 THEN CASE i %% 50 WHEN 4 THEN 'direct' ELSE 'unknown' END END,
	CASE WHEN i %% 3 = 1 THEN 'package' || (i %% 100) END, CASE WHEN i %% 3 = 1 THEN 'CVE-2026-' || (i %% 100) END,
	CASE WHEN i %% 3 = 1 THEN CASE i %% 50 WHEN 5 THEN 'high' ELSE 'none' END END, CASE WHEN i %% 300 = 1 THEN TRUE END,
	CASE i %% 50 WHEN 6 THEN 'open' END, CASE WHEN i %% 3 = 2 THEN CASE i %% 50 WHEN 7 THEN 'confirmed_valid' ELSE 'no_validator' END END,
	CASE WHEN i %% 300 = 2 THEN TRUE END, 'src/app' || i || '.py', 1, 1000000 + i, 1, 1, ? FROM n`

// lists are the requests of an RPC by name: without filters, with each filter, and for lists of findings with each pair
// of filters.
func (f *filling) lists(t *testing.T, rpc operation) map[string]*dynamicpb.Message {
	t.Helper()
	bare := f.request(t, rpc)
	for i := range bare.Descriptor().Fields().Len() {
		d := bare.Descriptor().Fields().Get(i)
		if isID(d) && !inPath(rpc, d) && !rulesOf(d).GetRequired() && !strings.Contains(rpcRequests[rpc.name], string(d.JSONName())) {
			bare.Clear(d)
		}
	}
	all := map[string]*dynamicpb.Message{"nothing": bare}
	kinds := []string{""}
	if rpc.name == "/palisade.findings.v1.FindingsService/ListFindings" {
		kinds = []string{"sast", "sca", "ai_sast"}
	}
	for _, kind := range kinds {
		of := proto.CloneOf(bare)
		if kind != "" {
			of.Mutable(of.Descriptor().Fields().ByName("issue_type")).List().Append(protoreflect.ValueOfString(kind))
		}
		filters := f.filters(rpc, of)
		for name, set := range filters {
			request := proto.CloneOf(of)
			set(request)
			all[kind+" "+name] = request
			if kind == "" && rpc.name != "/palisade.ai.v1.MemoriesService/FindRelevantIssues" {
				continue
			}
			for other, setOther := range filters {
				if name < other {
					both := proto.CloneOf(request)
					setOther(both)
					all[kind+" "+name+" and "+other] = both
				}
			}
		}
	}
	return all
}

func inPath(rpc operation, d protoreflect.FieldDescriptor) bool {
	return d.Name() == "deployment_id" || d.Name() == "deployment_slug" || strings.Contains(rpc.path, "{"+string(d.Name())+"}")
}

// filters fill one optional field of a request each, including the fields of filter messages.
func (f *filling) filters(rpc operation, bare *dynamicpb.Message) map[string]func(*dynamicpb.Message) {
	list := map[string]func(*dynamicpb.Message){}
	fields := bare.Descriptor().Fields()
	for i := range fields.Len() {
		d := fields.Get(i)
		switch {
		case inPath(rpc, d) || bare.Has(d) || d.IsMap() || d.Name() == "cursor" || d.Name() == "page_token":
		case d.Kind() == protoreflect.MessageKind && !d.IsList() && strings.HasPrefix(string(d.Message().FullName()), "palisade."):
			for j := range d.Message().Fields().Len() {
				if inner := d.Message().Fields().Get(j); !inner.IsMap() && inner.Kind() != protoreflect.MessageKind {
					list[string(d.Name()+"."+inner.Name())] = func(m *dynamicpb.Message) { f.set(m.Mutable(d).Message(), inner) }
				}
			}
		default:
			list[string(d.Name())] = func(m *dynamicpb.Message) { f.set(m, d) }
		}
	}
	return list
}
