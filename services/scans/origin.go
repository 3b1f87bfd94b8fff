package scans

import (
	"context"
	"regexp"
	"time"

	"github.com/palisade/palisade/ent"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/projects/codehost"
	"github.com/palisade/palisade/services/scans/places"
)

// origin is the repository and commit that a report is about.
type origin struct {
	commit string
	// repository is a web URL, or empty. explicit says that the caller named it, and not only the report.
	repository string
	explicit   bool
	commitTime time.Time // zero if unknown
}

// plainRevision is a revision that can be a part of a link.
var plainRevision = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]*$`)

// originOf completes what the caller says by what the report says.
func originOf(target *scansv1.UploadReportTarget, opened *sarifSource) origin {
	o := origin{commit: target.GetCommit(), repository: codehost.WebURL(target.GetRepoUrl())}
	o.explicit = o.repository != ""
	repository, revision, at := opened.scanned()
	if o.commit == "" && plainRevision.MatchString(revision) {
		o.commit = revision
	}
	if o.commitTime = at; target.GetCommitTime() != nil {
		o.commitTime = target.GetCommitTime().AsTime()
	}
	if !o.explicit {
		o.repository = codehost.WebURL(repository)
	}
	return o
}

// describe stores the URL of the repository with the project. A report sets it only if the project has none, and nobody
// changes the URL of a project that a source-code host describes.
func (o origin) describe(ctx context.Context, p *ent.Project) (*ent.Project, error) {
	if o.repository == "" || o.repository == p.URL || p.URL != "" && (!o.explicit || p.BoundBy != "") {
		return p, nil
	}
	return p.Update().SetURL(o.repository).Save(ctx)
}

// givenPlaces is what the caller says about the paths in a report.
func givenPlaces(target *scansv1.UploadReportTarget) places.Given {
	return places.Given{CheckoutRoot: target.GetCheckoutRoot(), PathPrefix: target.GetPathPrefix(), Project: target.GetProject()}
}

// checkOrigin refuses paths and a URL that cannot be meant.
func checkOrigin(target *scansv1.UploadReportTarget) error {
	if field, err := givenPlaces(target).Check(); err != nil {
		return apierr.InvalidArgument("target."+field, "target.%s %v", field, err)
	}
	if given := target.GetRepoUrl(); given != "" && codehost.WebURL(given) == "" {
		return apierr.InvalidArgument("target.repo_url", "target.repo_url %s; got %s", codehost.RepositoryRule, apierr.Quote(codehost.Shown(given)))
	}
	return nil
}
