package host

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
)

// azure is Azure DevOps Services, or a collection of Azure DevOps Server. Namespaces are "organization/project" or
// "organization"; the collection of a server counts as an organization. Full names of repositories are
// "organization/project/repository".
type azure struct {
	web    string
	token  string
	client *http.Client
	// identities is the service that knows users. Azure DevOps Services has another host for it.
	identities    string
	identityCalls *http.Client
}

// azureVersion is the version of the API that the requests ask for.
const azureVersion = "7.1"

// openAzure opens the host with a personal access token, or with a token of an application.
func openAzure(baseURL string, api *url.URL, token string, application bool, client *http.Client) *azure {
	authorization := ""
	switch {
	case application:
		authorization = bearer + token
	case token != "":
		authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(":"+token))
	}
	h := &azure{web: strings.TrimRight(baseURL, "/"), token: token, client: Confine(client, api, authorization)}
	h.identities, h.identityCalls = h.web, h.client
	if strings.EqualFold(h.web, CloudURL(scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS)) {
		users := &url.URL{Scheme: api.Scheme, Host: "vssps." + api.Host}
		h.identities, h.identityCalls = users.String(), Confine(client, users, authorization)
	}
	return h
}

// azurePlace is a namespace or repository in its parts; the last ones may be empty.
type azurePlace struct{ organization, project, repository string }

// errAzureName is the error for a name that Azure DevOps cannot have.
func errAzureName(name string) error {
	return &Error{Kind: NotFound, Text: "Azure DevOps has no such name: " + clip(name)}
}

// azurePlaceOf splits a name. It rejects parts that would change the URL of a request.
func azurePlaceOf(name string, least, most int) (azurePlace, error) {
	parts := strings.Split(name, "/")
	if len(parts) < least || len(parts) > most {
		return azurePlace{}, errAzureName(name)
	}
	for _, part := range parts {
		if strings.TrimSpace(part) == "" || len(part) > 255 || strings.Trim(part, ".") == "" || strings.HasPrefix(part, "_") ||
			strings.ContainsAny(part, `\/:*?"<>|#$;%`) || printable(part) != part {
			return azurePlace{}, errAzureName(name)
		}
	}
	parts = append(parts, "", "")
	return azurePlace{parts[0], parts[1], parts[2]}, nil
}

func azureRepositoryOf(name string) (azurePlace, error) { return azurePlaceOf(AzureName(name), 3, 3) }

// AzureName is the full name of the repository at a path of Azure DevOps: "acme/tools/web" for "acme/tools/_git/web".
// The repository that has the name of its project may lack the project: "acme/_git/tools".
func AzureName(path string) string {
	before, repository, ok := strings.Cut(path, "/_git/")
	if !ok {
		return path
	}
	if !strings.Contains(before, "/") {
		before += "/" + repository
	}
	return before + "/" + repository
}

// RepositoryURL is the web page of a repository by its full name.
func RepositoryURL(kind scmv1.ScmType, baseURL, name string) string {
	base := strings.TrimRight(baseURL, "/") + "/"
	if kind != scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS {
		return base + name
	}
	if at := strings.LastIndex(name, "/"); at > 0 {
		name = name[:at] + "/_git" + name[at:]
	}
	return base + strings.TrimPrefix((&url.URL{Path: "/" + name}).EscapedPath(), "/")
}

// path is a path of the API below the organization, or below the project for the parts that Git has.
func (p azurePlace) path(more string) string {
	parts := []string{p.organization}
	if p.project != "" {
		parts = append(parts, p.project)
	}
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/") + "/_apis/" + more
}

// git is a path of the repository's API.
func (p azurePlace) git(more string) string {
	return p.path("git/repositories/" + url.PathEscape(p.repository) + more)
}

// pull is a path of a pull request's API.
func (p azurePlace) pull(number int64, more string) string {
	return p.git(fmt.Sprintf("/pullRequests/%d%s", number, more))
}

// of is a path of the API of the organization.
func (p azurePlace) of(more string) string {
	return azurePlace{organization: p.organization}.path(more)
}

// call sends a request below the base URL and reads the answer into a value. query may be nil; body nil means none.
func (h *azure) call(ctx context.Context, method, path string, query url.Values, body, into any) error {
	return h.send(ctx, h.client, method, h.web+"/"+path, query, body, into)
}

func (h *azure) send(ctx context.Context, client *http.Client, method, address string, query url.Values, body, into any) error {
	if query == nil {
		query = url.Values{}
	}
	if query.Get("api-version") == "" {
		query.Set("api-version", azureVersion)
	}
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return malformed("the request cannot be written", err)
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, address+"?"+query.Encode(), content)
	if err != nil {
		return malformed("baseUrl is not the URL of an Azure DevOps", err)
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("X-TFS-FedAuthRedirect", "Suppress") // no redirect to the page to sign in
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := client.Do(request)
	if err != nil {
		return azureConnection(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return azureConnection(err)
	}
	if response.StatusCode < 200 || response.StatusCode > 204 || response.StatusCode == http.StatusNonAuthoritativeInfo {
		return azureRefusal(response, answer)
	}
	if into == nil {
		return nil
	}
	if trimmed := bytes.TrimSpace(answer); len(trimmed) == 0 || trimmed[0] != '{' {
		return connection(errNoObject)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return connection(err)
	}
	return nil
}

var errNoObject = errors.New("the answer is no JSON object")

func azureConnection(err error) error {
	var ours *Error
	if errors.As(err, &ours) {
		return ours
	}
	return connection(err)
}

// azureRefusal explains an answer with another status than success. For a wrong token, Azure DevOps answers with a page
// to sign in: status 203, or a redirect to it.
func azureRefusal(response *http.Response, body []byte) error {
	status := response.StatusCode
	wait := retryAfter(response.Header)
	switch {
	case status == http.StatusNonAuthoritativeInfo:
		status = http.StatusUnauthorized
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && !wait.IsZero():
		return rateLimited(wait, nil)
	}
	var said struct{ Message, TypeKey string }
	_ = json.Unmarshal(body, &said)
	e := refusal(status, said.Message, nil)
	// Azure DevOps also answers 400 for things that are not there.
	if e.Kind == Refused && strings.HasSuffix(said.TypeKey, "NotFoundException") {
		return refusal(http.StatusNotFound, "", nil)
	}
	return e
}

// azureList is an answer with a list.
type azureList[T any] struct {
	Value []*T
}

// azureItems reads a list that comes in one answer.
func azureItems[T any](ctx context.Context, h *azure, path string, query url.Values) ([]*T, error) {
	var answer azureList[T]
	err := h.call(ctx, http.MethodGet, path, query, nil, &answer)
	return checkList(answer.Value, err)
}

// azureProject is a project in an answer.
type azureProject struct {
	ID, Name, Visibility string
}

// azureRepository is a repository in an answer.
type azureRepository struct {
	ID, Name, DefaultBranch string
	IsDisabled              bool
	Project                 *azureProject
}

// Repositories lists the repositories of a project, or of all projects of an organization, in one answer.
func (h *azure) Repositories(ctx context.Context, namespace string) iter.Seq2[Repository, error] {
	return func(yield func(Repository, error) bool) {
		at, err := azurePlaceOf(namespace, 1, 2)
		if err != nil {
			yield(Repository{}, err)
			return
		}
		list := paged(func(int) ([]*azureRepository, int, error) {
			items, err := azureItems[azureRepository](ctx, h, at.path("git/repositories"), nil)
			return items, 0, err
		})
		convert(list, func(r *azureRepository) (Repository, error) { return h.repository(at.organization, r) })(yield)
	}
}

// Repository reads one repository.
func (h *azure) Repository(ctx context.Context, repository string) (Repository, error) {
	at, err := azureRepositoryOf(repository)
	if err != nil {
		return Repository{}, err
	}
	found, err := h.read(ctx, at)
	if err != nil {
		return Repository{}, err
	}
	return h.repository(at.organization, found)
}

func (h *azure) read(ctx context.Context, at azurePlace) (*azureRepository, error) {
	found := &azureRepository{}
	return checkAnswer(found, h.call(ctx, http.MethodGet, at.git(""), nil, nil, found))
}

func (h *azure) repository(organization string, r *azureRepository) (Repository, error) {
	if r.ID == "" || r.Name == "" || r.Project == nil || r.Project.ID == "" || r.Project.Name == "" {
		return Repository{}, malformed("the host's answer is not a repository of Azure DevOps", nil)
	}
	visibility := "private"
	if r.Project.Visibility == "public" {
		visibility = "public"
	}
	name := strings.Join([]string{organization, printable(r.Project.Name), printable(r.Name)}, "/")
	return Repository{
		ID: printable(r.ID), Name: name, URL: RepositoryURL(scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS, h.web, name),
		DefaultBranch: printable(shortRef(r.DefaultBranch)), Visibility: visibility, Archived: r.IsDisabled,
	}, nil
}

// branchRefs begins the full names of branches.
const branchRefs = "refs/heads/"

func shortRef(ref string) string { return strings.TrimPrefix(ref, branchRefs) }

// SetActionsSecret is not for Azure DevOps.
func (h *azure) SetActionsSecret(context.Context, string, string, string) error {
	return &Error{Kind: Unsupported, Text: "secrets for GitHub Actions exist only at GitHub: add the token to the variables of the pipeline"}
}

// errAzureIssues is the error of all calls about issues.
var errAzureIssues = &Error{Kind: Unsupported, Text: "repositories of Azure DevOps have no issues: use a tracker for tickets"}

// CheckIssues and the next methods are not for Azure DevOps.
func (h *azure) CheckIssues(context.Context, string) error { return errAzureIssues }

// CreateIssue is not for Azure DevOps.
func (h *azure) CreateIssue(context.Context, string, IssueDraft) (Issue, error) {
	return Issue{}, errAzureIssues
}

// FindIssue is not for Azure DevOps.
func (h *azure) FindIssue(context.Context, string, string, time.Time) (Issue, error) {
	return Issue{}, errAzureIssues
}

// Issue is not for Azure DevOps.
func (h *azure) Issue(context.Context, string, int64) (Issue, error) { return Issue{}, errAzureIssues }

// CommentOnIssue is not for Azure DevOps.
func (h *azure) CommentOnIssue(context.Context, string, int64, string) error { return errAzureIssues }

// SetIssueOpen is not for Azure DevOps.
func (h *azure) SetIssueOpen(context.Context, string, int64, bool) error { return errAzureIssues }
