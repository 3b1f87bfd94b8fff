package webhook

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/scm/host"
)

// RepositoryURL is the web page of a repository by its full name.
func RepositoryURL(of Host, baseURL, name string) string {
	kind := scmv1.ScmType_SCM_TYPE_UNKNOWN
	if of == AzureDevOps {
		kind = scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS
	}
	return host.RepositoryURL(kind, baseURL, name)
}

// Within completes an event of Azure DevOps: its bodies do not name the organization. namespace is the sender's.
func (e *Event) Within(of Host, baseURL, namespace string) {
	if of != AzureDevOps || e.Repository == "" {
		return
	}
	organization, _, _ := strings.Cut(namespace, "/")
	e.Repository = organization + "/" + e.Repository
	e.RepositoryURL = RepositoryURL(of, baseURL, e.Repository)
}

// azureType is the type of an event. Azure DevOps sends it in the body.
func azureType(body []byte) (string, error) {
	p, err := decode[struct{ EventType string }](body)
	if err != nil {
		return "", fmt.Errorf("%w: %v", ErrMalformed, err) //nolint:errorlint // texts of the JSON decoder
	}
	return p.EventType, nil
}

type azureRepository struct {
	ID      string
	Name    string
	Project struct{ Name string }
}

// event is an event about a repository, which Within completes.
func (r azureRepository) event() Event {
	if r.Name == "" || r.Project.Name == "" {
		return Event{}
	}
	return Event{Repository: r.Project.Name + "/" + r.Name, RepositoryID: r.ID}
}

type azurePull struct {
	Repository    azureRepository
	PullRequestID int64
	Status        string
	ClosedDate    time.Time
	// LastMergeCommit is the commit of refs/pull/<number>/merge.
	LastMergeCommit struct{ CommitID string }
}

// azureOpened parses the event of a new request.
func azureOpened(body []byte) (Event, error) {
	e, err := azurePullRequest(body)
	if e.Kind != Pushed {
		return Event{}, err
	}
	return e, err
}

// azurePullRequest uses the status to detect a closed request: Azure DevOps sends all changes, and attempts to merge.
// An active request counts each time, because the body does not say what changed.
func azurePullRequest(body []byte) (Event, error) {
	p, err := decode[struct {
		Resource    azurePull
		CreatedDate time.Time
	}](body)
	if err != nil || p.Resource.Status != "completed" && p.Resource.Status != "abandoned" && p.Resource.Status != "active" {
		return Event{}, err
	}
	e := p.Resource.Repository.event()
	if p.Resource.Status == "active" {
		e.Kind, e.Number, e.Commit, e.At = Pushed, p.Resource.PullRequestID, p.Resource.LastMergeCommit.CommitID, p.CreatedDate
		return e, nil
	}
	e.Kind, e.Number, e.Merged, e.At = Closed, p.Resource.PullRequestID, p.Resource.Status == "completed", p.Resource.ClosedDate
	if e.At.IsZero() {
		e.At = p.CreatedDate
	}
	return e, nil
}

// azureThreadLink has the id of a thread at its end, or before a comment.
var azureThreadLink = regexp.MustCompile(`/threads/([1-9][0-9]{0,17})(?:$|/)`)

// azureComment reads replies only: the first comment of a thread does not reply to ours. The ids of comments count
// within a thread.
func azureComment(body []byte) (Event, error) {
	type link struct{ Href string }
	p, err := decode[struct {
		Resource struct {
			Comment struct {
				ID                     int64
				Content                string
				CommentType            string
				IsDeleted              bool
				PublishedDate          time.Time
				LastContentUpdatedDate time.Time
				Author                 struct{ UniqueName string }
				Links                  struct{ Self, Threads link } `json:"_links"`
			}
			PullRequest azurePull
		}
	}](body)
	c := p.Resource.Comment
	if err != nil || c.ID <= 1 || c.IsDeleted || c.CommentType != "" && c.CommentType != "text" {
		return Event{}, err
	}
	thread := ""
	for _, one := range []link{c.Links.Threads, c.Links.Self} {
		if match := azureThreadLink.FindStringSubmatch(one.Href); match != nil && thread == "" {
			thread = match[1]
		}
	}
	e := p.Resource.PullRequest.Repository.event()
	e.Kind, e.Number, e.At = Commented, p.Resource.PullRequest.PullRequestID, c.LastContentUpdatedDate
	if e.At.IsZero() {
		e.At = c.PublishedDate
	}
	e.Comment = Comment{
		ID: fmt.Sprintf("%d/%s/%s", e.Number, thread, strconv.FormatInt(c.ID, 10)), Thread: thread, Body: c.Content, Author: c.Author.UniqueName,
	}
	return e, nil
}

// azurePush parses pushes that delete a branch: Azure DevOps has no other event for it.
func azurePush(body []byte) (Event, error) {
	p, err := decode[struct {
		Resource struct {
			RefUpdates []struct{ Name, NewObjectID string }
			Repository azureRepository
			Date       time.Time
		}
	}](body)
	if err != nil {
		return Event{}, err
	}
	e := p.Resource.Repository.event()
	for _, update := range p.Resource.RefUpdates {
		if update.NewObjectID != noCommit || !strings.HasPrefix(update.Name, branchPrefix) {
			continue
		}
		e.Kind, e.At = BranchDeleted, p.Resource.Date
		if e.Ref == "" {
			e.Ref = update.Name
			continue
		}
		e.MoreRefs = append(e.MoreRefs, update.Name)
	}
	if e.Kind == Other {
		return Event{}, nil
	}
	e.MoreRefs = e.MoreRefs[:min(len(e.MoreRefs), maxRefs)]
	return e, nil
}

// maxRefs limits the branches that one push deletes.
const maxRefs = 100

// azureUser is the user name in the header Authorization; the secret is the password.
const azureUser = "palisade"

// verifyBasic compares hashes, so that the secret's length does not leak either.
func verifyBasic(s Signature, secret string) error {
	want := sha256.Sum256([]byte("Basic " + base64.StdEncoding.EncodeToString([]byte(azureUser+":"+secret))))
	got := sha256.Sum256([]byte(s.Basic))
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
		return ErrSignature
	}
	return nil
}
