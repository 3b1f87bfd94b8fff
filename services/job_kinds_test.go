package services

import (
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

// upkeepKinds are the jobs of the whole installation. They run before the jobs of deployments and without a limit (see
// package jobs), so each waits at most once, regardless of deployments.
var upkeepKinds = []string{
	"abandoned_scans", "ai_suggest_memories", "ai_sweep", "apply_exploits", "audit_anchor", "automation_run_retention", "catch_up_freshness", "deliver_notifications", "delivery_retention", "due_tickets", "ended_sessions",
	"grown_tables", "lost_managed_scans", "lost_scan_results", "old_page_boundaries", "old_triage_changes", "policy_days", "purge_exports", "purge_scan_coverages", "refresh_statistics", "rename_refs", "scheduled_managed_scans",
	"send_digests", "send_reports", "scm_events_sweep", "scm_expiry", "sweep_refs", "tidy_packages", "token_request_expiry", "upgrade_identities", "watch_freshness", "workflow_artifact_retention",
	"workflow_sweep",
}

// TestJobsNameTheirDeployment: the arguments of all other kinds begin with the deployment, which fair scheduling uses.
func TestJobsNameTheirDeployment(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t, store.Options{Database: storetest.Postgres(t)}) // on which all domains have their jobs
	settings := config.Default()
	settings.AuditAnchor = "file:///nowhere"
	log := slog.New(slog.DiscardHandler)
	kinds, queues := map[string]river.JobArgs{}, map[string]int{}
	guard, err := egress.New(egress.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var background []jobs.Work
	for _, domain := range Domains {
		background = append(background, domain(&server.Deps{Config: settings, Store: st, Log: log, Egress: guard}).Background...)
	}
	for _, work := range background {
		if work.Register != nil {
			workers := river.NewWorkers()
			work.Register(workers)
			maps.Copy(kinds, registered(t, workers))
		}
		for _, q := range work.Queues {
			queues[q.Name] = q.Workers
		}
	}
	shared := map[string]bool{}
	for kind, args := range kinds {
		opts := river.InsertOpts{}
		if chooses, ok := args.(river.JobArgsWithInsertOpts); ok {
			opts = chooses.InsertOpts()
		}
		field, found := reflect.TypeOf(args).FieldByName("DeploymentID")
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch named := found && name == "deployment_id" && field.Type.Kind() == reflect.Int64; {
		case slices.Contains(upkeepKinds, kind):
			if named {
				t.Errorf("%s is for deployments: take it off the list", kind)
			}
			if len(opts.UniqueOpts.ByState) == 0 && !opts.UniqueOpts.ByArgs && opts.UniqueOpts.ByPeriod == 0 {
				t.Errorf("%s may wait more than once: use jobs.OnceWaiting", kind)
			}
		case !named:
			t.Errorf(`%s: the arguments %T have no field DeploymentID int64 with the tag json:"deployment_id"`, kind, args)
		default:
			queue := opts.Queue
			if queue == "" {
				queue = river.QueueDefault
			}
			shared[queue] = true
		}
	}
	for _, kind := range upkeepKinds {
		if kinds[kind] == nil {
			t.Errorf("%s is no kind of job any more", kind)
		}
	}
	// Each of these has a test in job_queues_test.go.
	if got, want := slices.Sorted(maps.Keys(shared)), []string{"advisories", "ai", "automations", "default", "exports", "path_ignores", "pattern_fix", "policies", "pull_requests", "refs", "sboms", "scanner", "scans", "scm_events", "support", "tickets", "workflows"}; !slices.Equal(got, want) {
		t.Errorf("deployments share the queues %v, want %v", got, want)
	}
	for queue := range shared {
		if queue != river.QueueDefault && queues[queue] < 2 {
			t.Errorf("queue %s has %d workers: one deployment could have them all", queue, queues[queue])
		}
	}
}

// registered are the arguments of all registered kinds. River does not list them.
func registered(t *testing.T, workers *river.Workers) map[string]river.JobArgs {
	t.Helper()
	list := map[string]river.JobArgs{}
	for _, entry := range reflect.ValueOf(workers).Elem().FieldByName("workersMap").Seq2() {
		args, ok := reflect.New(entry.FieldByName("jobArgs").Elem().Type()).Elem().Interface().(river.JobArgs)
		if !ok {
			t.Fatal("River keeps workers in another way")
		}
		list[args.Kind()] = args
	}
	return list
}
