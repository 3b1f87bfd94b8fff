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
)

// scannerTool is the tool of the findings that scanners in CI report. It is that of SARIF files of the same scanner, so
// that decisions survive a change from one way to the other.
const scannerTool = "semgrep"

// The states of results (column scans.results_state); none have come while it is empty.
const (
	resultsReceived = "received"
	resultsStored   = "stored"
	resultsFailed   = "failed"
)

// maxDryRuns is how many dry runs this node remembers, so that they can ask for their configuration.
const maxDryRuns = 1000

// ScannerProtocol is the service group "scanner protocol".
type ScannerProtocol struct {
	scansv1.UnimplementedScannerProtocolServiceServer
	store   *store.Store
	jobs    *jobs.Jobs
	options UploadOptions
	baseURL string
	// dryRuns are never stored. On several nodes a dry run by the second form of the protocol has to reach the same node
	// twice.
	dryRuns *lru.Cache[requestKey, wanted]
}

// requestKey is the scanner's id of its run.
type requestKey struct {
	deploymentID int64
	uniqueID     string
}

// NewScannerProtocol serves scanners from the store. What they send is worked on by ScannerBackground. People reach the
// server at baseURL.
func NewScannerProtocol(st *store.Store, queue *jobs.Jobs, o UploadOptions, baseURL string) (*ScannerProtocol, error) {
	dryRuns, err := lru.New[requestKey, wanted](maxDryRuns)
	if err != nil {
		return nil, err
	}
	return &ScannerProtocol{store: st, jobs: queue, options: o, baseURL: baseURL, dryRuns: dryRuns}, nil
}

// wanted is what a scan is to look at.
type wanted struct {
	products   []string // enabled ones
	partial    []string // rules; empty: all
	cliVersion string
	project    string // empty: only the configuration is wanted
}

// settings are the deployment's switches that scans depend on.
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

// enabled are the products of the deployment that are asked for; all that it has when none is asked for.
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

// info tells a scanner of its scan; id is 0 for one that is not stored.
func (s settings) info(id int64, products []string) *scansv1.ScanInfo {
	info := &scansv1.ScanInfo{EnabledProducts: products, DeploymentId: s.row.ID, DeploymentName: s.row.Name}
	if id != 0 {
		info.Id = &id
	}
	return info
}

// engineParams say how to run. Analysis across files is never asked for: it takes an engine that this server does not
// have.
func (s settings) engineParams(products []string) *scansv1.EngineParams {
	return &scansv1.EngineParams{
		Autofix:         s.products.GetSast().GetHumanAutofixEnabled(),
		DependencyQuery: s.row.DependencyQuery && slices.Contains(products, vocabulary.SCA),
		HistoricalConfig: &scansv1.HistoricalConfiguration{
			Enabled: slices.Contains(products, vocabulary.Secrets) && s.products.GetSecrets().GetHistoricalScan().GetEnabled(),
		},
	}
}
