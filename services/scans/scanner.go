package scans

import (
	"context"
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/tenant"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/deployments/details"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/pathignore"
	"github.com/palisade/palisade/services/scans/watch"
)

// scannerTool is the tool of findings that scanners in CI report. SARIF reports of the same scanner have the same tool,
// so that decisions survive a change between the two.
const scannerTool = watch.ScannerTool

// The states of results (column scans.results_state). It is empty before results arrive.
const (
	resultsReceived = "received"
	resultsStored   = "stored"
	resultsFailed   = "failed"
)

// maxDryRuns bounds how many dry runs this node keeps, so that they can fetch their configuration.
const maxDryRuns = 1000

// ScannerProtocol is the service group "scanner protocol".
type ScannerProtocol struct {
	scansv1.UnimplementedScannerProtocolServiceServer
	store   *store.Store
	jobs    *jobs.Jobs
	options UploadOptions
	baseURL string
	// dryRuns are never stored. On several nodes, a dry run by the second form of the protocol has to reach the same
	// node twice.
	dryRuns *lru.Cache[requestKey, wanted]
	// awaiting limits the completions that wait for their results.
	awaiting chan struct{}
}

// requestKey is the scanner's id of its run.
type requestKey struct {
	deploymentID int64
	uniqueID     string
}

// NewScannerProtocol serves scanners from the store. ScannerBackground processes what they send. baseURL is the address
// of the server for people.
func NewScannerProtocol(st *store.Store, queue *jobs.Jobs, o UploadOptions, baseURL string) (*ScannerProtocol, error) {
	dryRuns, err := lru.New[requestKey, wanted](maxDryRuns)
	if err != nil {
		return nil, err
	}
	return &ScannerProtocol{store: st, jobs: queue, options: o, baseURL: baseURL, dryRuns: dryRuns, awaiting: make(chan struct{}, maxAwaiting)}, nil
}

// wanted is what a scan should run.
type wanted struct {
	products   []string // enabled products
	partial    []string // rules; empty: all
	cliVersion string
	project    string   // empty: only the configuration is requested
	decided    []string // rules in mode block that the server decides about
}

// settings are the settings of the deployment that scans depend on.
type settings struct {
	row      *ent.Deployment
	products *deploymentsv1.DeploymentProductConfig
}

func (s *ScannerProtocol) settings(ctx context.Context) (settings, error) {
	id, _ := tenant.FromContext(ctx)
	row, err := s.store.Reader.Deployment.Query().Where(deployment.ID(id)).Only(ctx)
	if err != nil {
		return settings{}, err
	}
	products, err := details.Products(row)
	return settings{row, products}, err
}

// enabled returns the requested products that the deployment has enabled; all enabled products if none are requested.
func (s settings) enabled(requested []string) []string {
	products := []string{}
	for _, p := range []struct {
		word string
		on   bool
	}{{vocabulary.SAST, s.products.GetSast().GetEnabled()}, {vocabulary.SCA, s.products.GetSca().GetEnabled()}, {vocabulary.Secrets, s.products.GetSecrets().GetEnabled()}} {
		if p.on && (len(requested) == 0 || slices.Contains(requested, p.word)) {
			products = append(products, p.word)
		}
	}
	return products
}

// info describes a scan to its scanner. id is 0 for a scan that is not stored.
func (s settings) info(id int64, products []string) *scansv1.ScanInfo {
	info := &scansv1.ScanInfo{EnabledProducts: products, DeploymentId: s.row.ID, DeploymentName: s.row.Name}
	if id != 0 {
		info.Id = &id
	}
	return info
}

// engineParams returns the parameters of the engine. Cross-file analysis is never requested: it needs an engine that
// this server does not have.
func (s settings) engineParams(products []string, ignores *pathignore.Matcher) (*scansv1.EngineParams, error) {
	ofProducts, err := productIgnoredFiles(products, ignores)
	return &scansv1.EngineParams{
		IgnoredFiles:        ignores.SkippedByAll(products),
		ProductIgnoredFiles: ofProducts,
		Autofix:             s.autofix(),
		DependencyQuery:     s.row.DependencyQuery && slices.Contains(products, vocabulary.SCA),
		HistoricalConfig: &scansv1.HistoricalConfiguration{
			Enabled: slices.Contains(products, vocabulary.Secrets) && s.products.GetSecrets().GetHistoricalScan().GetEnabled(),
		},
	}, err
}

func (s settings) autofix() bool { return s.products.GetSast().GetHumanAutofixEnabled() }
