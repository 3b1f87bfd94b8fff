package services_test

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
)

// isRead matches statements that read without locks.
var isRead = regexp.MustCompile(`(?i)^\s*(SELECT|WITH\b.*\bSELECT)\b`)

// isList matches RPCs with paged responses.
var isList = regexp.MustCompile(`/(List|Search)[A-Z]`)

// short are lists that stay short here: lists with a low limit, the deployments of one user, what the server itself
// knows, the content of one row, and removed findings and findings of dependencies, which this test does not have.
var short = []string{
	"ListAvailableFeatureRollouts", "ListFindingsForAdvisory", "ListDeploymentSsoProviders", "ListDeployments", "ListDeploymentsV1", "ListScmWebhookSubscription",
	"ListCloudPostureCredentials", "ListRemovedFindings", "ListSessions", "ListSuggestedMemories", "ListUserJoinableOrgs", "ListUserOrgs",
}

// uneven are RPCs that stay within their budget but vary: reports and issues cache what they have read, an upload
// stores its results in batches, one reader serves all watchers, and the first task stores the key of tokens.
var uneven = regexp.MustCompile(`\.(Overview)?ReportsService/|/(UploadReport|WatchFindings|ExportIssues|GetIssueCounts|GetIssueFilters|ListIssueGroups|ListIssues)$`)

// isFrame matches statements that begin and end transactions and savepoints.
var isFrame = regexp.MustCompile(`(?i)^\s*(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE)\b`)

// isNotification matches what wakes the workers of a queue on PostgreSQL: River sends it once for many jobs.
var isNotification = regexp.MustCompile(`\bpg_notify\(`)

// isKeys matches what reads all public keys of tokens: a server reads them again every half minute, in the request that
// happens to come then. Look-ups of a user that also require a key are not among them.
var isKeys = regexp.MustCompile("(?i)^\\s*SELECT [^()]* FROM [`\"]signing_keys[`\"]")

// TestQueryBudgets calls every RPC in a deployment with two rows in each table and in one with fifty. Both must take
// the same number of statements, within the budget: none is sent for each row.
func TestQueryBudgets(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s, seen := apitest.StartRecorded(t, on)
		few, many := newFilling(t, s, "few", 1, 2), newFilling(t, s, "many", 2, 50)
		warm(t, few)
		for _, rpc := range inOrder(operations()) {
			want, ok := budgets[rpc.name]
			if !ok {
				t.Errorf("%s has no budget: give it one in rpc_budgets_test.go", rpc.name)
			}
			a, first, _, statements := spent(t, few, rpc, seen)
			b, rest, rows, others := spent(t, many, rpc, seen)
			if a.code != want.code || b.code != want.code {
				t.Errorf("%s: %v %q and %v %q, want %v", rpc.name, a.code, first.Message(), b.code, rest.Message(), want.code)
			}
			if isList.MatchString(rpc.name) && rows < 25 && !slices.Contains(short, path.Base(rpc.name)) && want.code == codes.OK {
				t.Errorf("%s shows only %d rows where there are fifty: say in rpc_requests_test.go how to see them", rpc.name, rows)
			}
			if a != b && !uneven.MatchString(rpc.name) {
				t.Errorf("%s: %d reads and %d writes for two rows, %d and %d for fifty; only once:\n%s", rpc.name, a.reads, a.writes, b.reads, b.writes,
					strings.Join(onlyOnce(statements, others), "\n"))
			}
			if reads, writes := max(a.reads, b.reads), max(a.writes, b.writes); reads > want.reads || writes > want.writes {
				t.Errorf("%s: %d reads and %d writes, its budget is %d and %d", rpc.name, reads, writes, want.reads, want.writes)
			}
		}
	})
}

// inOrder sorts reads before changes and deletions last.
func inOrder(list []operation) []operation {
	rank := func(rpc operation) int {
		switch {
		case regexp.MustCompile(`/(DeleteProject|DeleteProjectV2|DeleteScmApp)$`).MatchString(rpc.name):
			return 3 // others depend on it
		case regexp.MustCompile(`/(Delete|Remove)`).MatchString(rpc.name):
			return 2
		case onlyReads(rpc):
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b operation) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.name, b.name))
	})
	return list
}

// warm fills the server's caches.
func warm(t *testing.T, f *filling) {
	for _, credential := range []string{f.admin, f.tenant.Token} {
		f.server.Do(t, credential, "GET", "/api/v1/deployments", "")
	}
}

func spent(t *testing.T, f *filling, rpc operation, seen *apitest.Statements) (used budget, answer *status.Status, rows int, statements []apitest.Statement) {
	t.Helper()
	seen.Take("")
	answer, rows = f.call(t, rpc, f.request(t, rpc))
	statements = seen.Take(rpc.name)
	used = countOf(statements)
	used.code = answer.Code()
	return used, answer, rows, statements
}

// onlyOnce returns the statements that one of two calls sent more often than the other.
func onlyOnce(a, b []apitest.Statement) (texts []string) {
	difference := map[string]int{}
	for _, statement := range a {
		difference[statement.Text]++
	}
	for _, statement := range b {
		difference[statement.Text]--
	}
	for text, n := range difference {
		if n != 0 {
			texts = append(texts, text)
		}
	}
	return texts
}

// countOf counts statements.
func countOf(statements []apitest.Statement) (used budget) {
	for _, statement := range statements {
		switch {
		case isFrame.MatchString(statement.Text), isNotification.MatchString(statement.Text), isKeys.MatchString(statement.Text):
		case isRead.MatchString(statement.Text):
			used.reads++
		default:
			used.writes++
		}
	}
	return used
}
