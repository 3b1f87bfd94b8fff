package services_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
)

// refusedOnly are RPCs that need a code host, a chat or a model to succeed. The cost of a success is not measured here.
var refusedOnly = map[string]bool{
	"AiTasksService/CreateCombinedTask":                         true,
	"ChatAppService/HandleChatAppCallback":                      true,
	"ChatAppService/InstallChatAppApp":                          true,
	"ChatAppService/ListChatAppChannels":                        true,
	"ChatAppService/ReceiveChatAppInteraction":                  true,
	"AiTasksService/CreatePatternFixTask":                       true,
	"IncomingWebhooksService/ReceiveWebhook":                    true,
	"ProjectsV2Service/GetBranch":                               true, // costs the same with a branch
	"RepositoryChangesService/RefreshProjectsAsync":             true,
	"RepositoryChangesService/SyncRepo":                         true,
	"ManagedScanSettingsService/CreateManagedScanSettings":      true, // a deployment has at most one
	"ManagedScansService/CancelManagedScan":                     true, // needs a scan that has not ended
	"ScannerSupportService/GetDeepEngine":                       true, // never succeeds
	"ScmAppsService/AddAdoScmProject":                           true,
	"ScmAppsService/CompleteAdoScmAppInstall":                   true,
	"ScmAppsService/CompleteScmAppRequest":                      true,
	"ScmAppsService/RotateScmAppWebhookSecret":                  true,
	"ScmService/CreateScmConfig":                                true,
	"ScmService/SyncScmConfig":                                  true,
	"ScmSubscriptionsService/RotateScmWebhookSecret":            true,
	"ScmSubscriptionsService/ScmWebhookSubscriptionSubscribe":   true,
	"ScmSubscriptionsService/ScmWebhookSubscriptionUnsubscribe": true,
}

// tickets links all findings to a ticket and deletes it.
func (f *flows) tickets(t *testing.T) {
	base := fmt.Sprintf("/api/notifications/deployments/%d/ticketing/v2/%d/tickets", f.tenant.DeploymentID, f.base+1)
	ids := make([]string, f.rows)
	for i := range ids {
		ids[i] = strconv.FormatInt(f.base+1+int64(i), 10)
	}
	var answer struct{ TicketID int64 }
	f.do(t, http.MethodPost, base+"/link", fmt.Sprintf(`{"ticketUrl":"https://tickets.acme.test/browse/SEC-1","issueIds":[%s]}`, strings.Join(ids, ",")), &answer)
	f.spend(t, "/palisade.ticketing.v1.ExternalTicketingService/DeleteTicketingTicket", "a ticket of all findings", http.MethodDelete,
		fmt.Sprintf("%s/%d", base, answer.TicketID), "", nil)
	f.do(t, http.MethodPost, base+"/link", fmt.Sprintf(`{"ticketUrl":"https://tickets.acme.test/browse/SEC-2","issueIds":[%s]}`, strings.Join(ids, ",")), &answer)
	f.spend(t, "/palisade.ticketing.v1.TicketingService/DeleteTicket", "a ticket of all findings", http.MethodDelete,
		fmt.Sprintf("/api/v1/deployments/%d/ticketing/v2/tickets/%d", f.tenant.DeploymentID, answer.TicketID), "", nil)
}

// budgetsOfSuccess are the budgets of RPCs that only fail in TestQueryBudgets, because they need more than rows to
// succeed.
var budgetsOfSuccess = map[string]budget{
	// The credential, the export and its first chunk.
	"/palisade.findings.v1.ExportsService/DownloadExport": {reads: 6},
	"/palisade.platform.v1.TasksService/GetTaskResult":    {reads: 6},
	// Both findings and the rest of their identities, before and after locking the project.
	"/palisade.findings.v1.FindingIdentityService/MergeFindings": {reads: 9, writes: 5},
	"/palisade.findings.v1.FindingIdentityService/SplitFinding":  {reads: 8, writes: 6},
	// Compares all changes of both findings since, and merges or splits them.
	"/palisade.findings.v1.FindingIdentityService/UndoIdentityChange": {reads: 16, writes: 5},
	"/palisade.identity.v1.SessionsService/RevokeSession":             {reads: 4, writes: 3},
	"/palisade.notifications.v1.DeliveriesService/ReplayDelivery":     {reads: 4, writes: 5},
	// One more for each list that the bundle names: projects, tags, modes and new, changed and removed exceptions.
	"/palisade.policies.v1.PoliciesV2Service/ApplyDetectionPolicy":          {reads: 12, writes: 9},
	"/palisade.policies.v1.PoliciesV2Service/ApplyRemediationPolicies":      {reads: 5, writes: 6},
	"/palisade.rules.v1.ScannerRulesService/GetRuleSnippet":                 {reads: 3},
	"/palisade.ticketing.v1.ExternalTicketingService/DeleteTicketingTicket": {reads: 12, writes: 7},
	"/palisade.ticketing.v1.TicketingService/DeleteTicket":                  {reads: 12, writes: 7},
	// One event and one update for the findings of each decision of the scan.
	"/palisade.scans.v1.HeldClosesService/ConfirmHeldCloses": {reads: 6, writes: 5},
	"/palisade.scans.v1.HeldClosesService/RejectHeldCloses":  {reads: 7, writes: 4},
	// The first call after the results replaces the dependencies of the project: one write for all new and changed
	// ones.
	"/palisade.scans.v1.ScannerProtocolService/CompleteScan": {reads: 17, writes: 6},
	// Quarantines a rule that the scanner calls broken, and looks whether all scans fail.
	"/palisade.scans.v1.ScannerProtocolService/ReportScanError": {reads: 22, writes: 6},
	// Results are stored in parts of a megabyte, so fifty are one part.
	"/palisade.scans.v1.ScannerProtocolService/UploadScanResults": {reads: 6, writes: 6},
	"/palisade.supplychain.v1.SbomsService/GetSbomExport":         {reads: 3},
	// Ends waiting and running attempts and tasks with one write each.
	"/palisade.workflows.v1.WorkflowRunsService/CancelWorkflowJob":  {reads: 8, writes: 9},
	"/palisade.workflows.v1.WorkflowRunsService/RetryWorkflowJob":   {reads: 6, writes: 7},
	"/palisade.workflows.v1.WorkflowRunsService/TriggerWorkflowJob": {reads: 5, writes: 7},
	// Reads run, task and attempt before and after locking the run, and starts the next tasks or, which costs most,
	// ends the run and reports what it no longer found.
	"/palisade.workflows.v1.WorkflowTasksService/CompleteWorkflowTask":  {reads: 18, writes: 13},
	"/palisade.workflows.v1.WorkflowTasksService/HeartbeatWorkflowTask": {reads: 4, writes: 1},
	"/palisade.workflows.v1.WorkflowTasksService/PutWorkflowArtifact":   {reads: 5, writes: 2},
}

// cost is the cost of one call.
type cost struct {
	rpc, what string // distinguishes several calls of one RPC
	budget
}

// flows creates the preconditions of successful calls, in a deployment with a number of rows of everything.
type flows struct {
	*filling
	seen  *apitest.Statements
	costs []cost
}

// TestQueryBudgetsOfSuccess measures calls with two items and with fifty: findings and their branches, rules, tasks of
// a run, policies. Both must take the same number of statements, within the budget.
func TestQueryBudgetsOfSuccess(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s, seen := apitest.StartRecorded(t, func(c *config.Config) {
			on(c)
			c.EgressAllow = "127.0.0.1"
		})
		few, many := newFlows(t, s, seen, "few", 1, 2), newFlows(t, s, seen, "many", 2, 50)
		met := map[string]bool{}
		for i, a := range few.costs {
			b, want := many.costs[i], budgetsOfSuccess[a.rpc]
			met[a.rpc] = true
			if a != b {
				t.Errorf("%s (%s): %d reads and %d writes for two, %d and %d for fifty", a.rpc, a.what, a.reads, a.writes, b.reads, b.writes)
			}
			if reads, writes := max(a.reads, b.reads), max(a.writes, b.writes); reads > want.reads || writes > want.writes {
				t.Errorf("%s (%s): %d reads and %d writes, its budget is %d and %d", a.rpc, a.what, reads, writes, want.reads, want.writes)
			}
			if a.reads == 0 {
				t.Errorf("%s (%s): nothing was recorded", a.rpc, a.what)
			}
		}
		for rpc := range budgetsOfSuccess {
			if !met[rpc] {
				t.Errorf("%s was not called", rpc)
			}
		}
	})
}

func newFlows(t *testing.T, s *apitest.Server, seen *apitest.Statements, slug string, number, rows int64) *flows {
	t.Helper()
	f := &flows{filling: newFilling(t, s, slug, number, rows), seen: seen}
	of := *s
	of.Tenant = f.tenant
	f.server = &of
	warm(t, f.filling)
	for _, flow := range []func(*testing.T){f.identities, f.scanner, f.rules, f.branches, f.issues, f.policies, f.detection, f.deliveries, f.closes, f.exports, f.sboms, f.signIns, f.tickets} {
		flow(t)
	}
	return f
}

// inside is a context for reading the deployment.
func (f *flows) inside(t *testing.T) context.Context {
	return tenant.NewContext(t.Context(), f.tenant.DeploymentID)
}

// do sends a request over HTTP, requires success, and decodes the response.
func (f *flows) do(t *testing.T, method, target, body string, answer any, header ...string) {
	t.Helper()
	got := f.server.Do(t, f.tenant.Token, method, target, body, append(header, "Content-Type", "application/json")...)
	if got.Status != http.StatusOK && got.Status != http.StatusAccepted {
		t.Fatalf("%s %s: %d %.500s", method, target, got.Status, got.Body)
	}
	if answer == nil {
		return
	}
	if err := json.Unmarshal([]byte(got.Body), answer); err != nil {
		t.Fatalf("%v in %.500s", err, got.Body)
	}
}

// spend is do that also measures the cost.
func (f *flows) spend(t *testing.T, rpc, what, method, target, body string, answer any, header ...string) {
	t.Helper()
	f.seen.Take("")
	f.do(t, method, target, body, answer, header...)
	f.costs = append(f.costs, cost{rpc, what, countOf(f.seen.Take(rpc))})
}

// TestBudgetsAreOfRPCs: every budget belongs to an RPC, and RPCs that only fail are listed.
func TestBudgetsAreOfRPCs(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, rpc := range operations() {
		known[rpc.name] = true
	}
	for name, b := range budgets {
		_, succeeds := budgetsOfSuccess[name]
		switch hosted := refusedOnly[name[strings.LastIndexByte(name, '.')+1:]]; {
		case !known[name]:
			t.Errorf("%s has a budget and is no RPC", name)
		case b.code != codes.OK && !succeeds && !hosted:
			t.Errorf("%s is seen refused only (%v): let it succeed in TestQueryBudgetsOfSuccess", name, b.code)
		case hosted && (b.code == codes.OK || succeeds):
			t.Errorf("%s is in refusedOnly and succeeds", name)
		}
	}
}
