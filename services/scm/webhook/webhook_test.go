package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func digest(body, secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// standard signs like GitLab with a signing token.
func standard(t *testing.T, body, secret string, at time.Time) Signature {
	t.Helper()
	signer, err := standardwebhooks.NewWebhookRaw([]byte(secret))
	if strings.HasPrefix(secret, "whsec_") {
		signer, err = standardwebhooks.NewWebhook(secret)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := signer.Sign("msg_1", at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return Signature{ID: "msg_1", Timestamp: strconv.FormatInt(at.Unix(), 10), Signatures: "v1,AAAA " + text}
}

// basic is the header Authorization of Azure DevOps.
func basic(secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte("palisade:"+secret))
}

func TestVerify(t *testing.T) {
	const body, secret, old = `{"action":"closed"}`, "kX3-new-secret", "kX3-old-secret"
	signing := "whsec_" + base64.StdEncoding.EncodeToString([]byte("a key of GitLab's own"))
	now := time.Now()
	both := standard(t, body, "another secret", now)
	both.Token = secret
	stale := standard(t, body, secret, now.Add(-6*time.Minute))
	staleWithToken := stale
	staleWithToken.Token = secret
	for name, test := range map[string]struct {
		host    Host
		s       Signature
		secrets []string
		want    error
	}{
		"GitHub":                           {GitHub, Signature{Digest: digest(body, secret)}, []string{secret}, nil},
		"GitHub, upper case":               {GitHub, Signature{Digest: "sha256=" + strings.ToUpper(digest(body, secret)[7:])}, []string{secret}, nil},
		"GitHub, previous secret":          {GitHub, Signature{Digest: digest(body, old)}, []string{secret, old}, nil},
		"GitHub, other secret":             {GitHub, Signature{Digest: digest(body, old)}, []string{secret}, ErrSignature},
		"GitHub, other body":               {GitHub, Signature{Digest: digest(body+" ", secret)}, []string{secret}, ErrSignature},
		"GitHub, SHA-1":                    {GitHub, Signature{Digest: "sha1=5b0f1d3aa9dd3c4ef8c3a4b86ad2c84f0c8ad3a5"}, []string{secret}, ErrSignature},
		"GitHub, no hexadecimal":           {GitHub, Signature{Digest: "sha256=zz"}, []string{secret}, ErrSignature},
		"GitHub, empty digest":             {GitHub, Signature{Digest: "sha256="}, []string{secret}, ErrSignature},
		"GitHub, unsigned":                 {GitHub, Signature{}, []string{secret}, ErrUnsigned},
		"GitHub, GitLab's token":           {GitHub, Signature{Token: secret}, []string{secret}, ErrUnsigned},
		"GitLab, token":                    {GitLab, Signature{Token: secret}, []string{secret}, nil},
		"GitLab, previous token":           {GitLab, Signature{Token: old}, []string{secret, old}, nil},
		"GitLab, other token":              {GitLab, Signature{Token: old}, []string{secret}, ErrSignature},
		"GitLab, longer token":             {GitLab, Signature{Token: secret + "x"}, []string{secret}, ErrSignature},
		"GitLab, GitHub's digest":          {GitLab, Signature{Digest: digest(body, secret)}, []string{secret}, ErrUnsigned},
		"GitLab, unsigned":                 {GitLab, Signature{}, []string{secret}, ErrUnsigned},
		"Standard Webhooks":                {GitLab, standard(t, body, secret, now), []string{secret}, nil},
		"Standard Webhooks, previous":      {GitLab, standard(t, body, old, now), []string{secret, old}, nil},
		"Standard Webhooks, signing token": {GitLab, standard(t, body, signing, now), []string{signing}, nil},
		"Standard Webhooks, other secret":  {GitLab, standard(t, body, old, now), []string{secret}, ErrSignature},
		"Standard Webhooks, other body":    {GitLab, standard(t, body+" ", secret, now), []string{secret}, ErrSignature},
		"Standard Webhooks, stale":         {GitLab, stale, []string{secret}, ErrTimestamp},
		"Standard Webhooks, stale, token":  {GitLab, staleWithToken, []string{secret}, ErrTimestamp},
		"Standard Webhooks, future":        {GitLab, standard(t, body, secret, now.Add(6*time.Minute)), []string{secret}, ErrTimestamp},
		"Standard Webhooks, stale, wrong":  {GitLab, standard(t, body, old, now.Add(-time.Hour)), []string{secret}, ErrSignature},
		"token and foreign signature":      {GitLab, both, []string{secret}, nil},
		"Azure DevOps":                     {AzureDevOps, Signature{Basic: basic(secret)}, []string{secret}, nil},
		"Azure DevOps, previous secret":    {AzureDevOps, Signature{Basic: basic(old)}, []string{secret, old}, nil},
		"Azure DevOps, other secret":       {AzureDevOps, Signature{Basic: basic(old)}, []string{secret}, ErrSignature},
		"Azure DevOps, bearer":             {AzureDevOps, Signature{Basic: "Bearer " + secret}, []string{secret}, ErrSignature},
		"Azure DevOps, unsigned":           {AzureDevOps, Signature{Token: secret}, []string{secret}, ErrUnsigned},
		"Azure DevOps, no secret":          {AzureDevOps, Signature{Basic: basic(decoy)}, nil, ErrSignature},
		"GitHub, basic":                    {GitHub, Signature{Basic: basic(secret)}, []string{secret}, ErrUnsigned},
		"no receiver":                      {"", Signature{Digest: digest(body, decoy), Token: decoy}, nil, ErrUnsigned},
		"no secret, decoy's digest":        {GitHub, Signature{Digest: digest(body, decoy)}, nil, ErrSignature},
		"no secret, decoy's token":         {GitLab, Signature{Token: decoy}, nil, ErrSignature},
		"no secret, decoy's signature":     {GitLab, standard(t, body, decoy, now), nil, ErrSignature},
		"one secret, decoy's token":        {GitLab, Signature{Token: decoy}, []string{secret}, ErrSignature},
	} {
		if _, err := Verify(test.host, test.s, []byte(body), test.secrets); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

// TestSignedID: only Standard Webhooks sign the delivery id.
func TestSignedID(t *testing.T) {
	const body, secret = `{}`, "kX3-new-secret"
	both := standard(t, body, secret, time.Now())
	both.Token = secret
	foreign := standard(t, body, "another secret", time.Now())
	foreign.Token = secret
	for name, test := range map[string]struct {
		host Host
		s    Signature
		want bool
	}{
		"digest":                      {GitHub, Signature{ID: "msg_1", Digest: digest(body, secret)}, false},
		"token":                       {GitLab, Signature{ID: "msg_1", Token: secret}, false},
		"signature":                   {GitLab, standard(t, body, secret, time.Now()), true},
		"token and signature":         {GitLab, both, true},
		"token and foreign signature": {GitLab, foreign, false},
	} {
		if got, err := Verify(test.host, test.s, []byte(body), []string{secret}); err != nil || got != test.want {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
}

func payload(t testing.TB, name string, changes ...string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	raw = bytes.ReplaceAll(raw, []byte("@AT@"), []byte("2026-05-04T10:20:30Z"))
	for i := 0; i+1 < len(changes); i += 2 {
		if !bytes.Contains(raw, []byte(changes[i])) {
			t.Fatalf("%s has no %s", name, changes[i])
		}
		raw = bytes.ReplaceAll(raw, []byte(changes[i]), []byte(changes[i+1]))
	}
	return raw
}

func TestParse(t *testing.T) {
	at := time.Date(2026, 5, 4, 10, 20, 30, 0, time.UTC)
	closed := Event{Kind: Closed, At: at, Repository: "acme/web", RepositoryID: "186853002", RepositoryURL: "https://git.acme.test/acme/web", Number: 17}
	merged := closed
	merged.Merged = true
	comment := Event{
		Kind: Commented, At: at, Repository: "acme/web", RepositoryID: "186853002", RepositoryURL: "https://git.acme.test/acme/web", Number: 17,
		Comment: Comment{ID: "5102", Thread: "5101", Body: "/fp the input is a constant", Author: "octavia", Path: "app/login.go", Line: 42},
	}
	outdated, bot, fromApp, cleaned := comment, comment, comment, comment
	bot.Comment.Bot, fromApp.Installation.ID = true, 8801
	cleaned.Comment.Body = "/fp zero"
	installed := Event{Kind: Installed, Installation: Installation{
		ID: 8801, Namespace: "acme", Present: true, UpdatedAt: time.Date(2026, 5, 4, 10, 20, 30, 0, time.UTC), ReadsCode: new(true),
	}}
	suspended, deleted, timeless := installed, installed, installed
	timeless.Installation.UpdatedAt = time.Time{}
	suspended.Installation.Suspended, deleted.Installation.Present = true, false
	request := Event{Kind: Closed, At: at, Repository: "acme/platform/api", RepositoryID: "5", RepositoryURL: "https://git.acme.test/acme/platform/api", Number: 17}
	requestMerged := request
	requestMerged.Merged = true
	note := Event{
		Kind: Commented, At: at, Repository: "acme/platform/api", RepositoryID: "5", RepositoryURL: "https://git.acme.test/acme/platform/api", Number: 17,
		Comment: Comment{
			ID: "1244", Thread: "6a9c1750b37d513a43987b574953fceb50b03ce7", Body: "/fp the input is a constant", Author: "mona", Path: "app/login.go", Line: 42,
		},
	}
	botNote, general := note, note
	botNote.Comment.Author, botNote.Comment.Bot = "project_5_bot_1f2e3d", true
	general.Comment.Path, general.Comment.Line = "", 0
	renamed := Event{
		Kind: Changed, Repository: "acme/site", RepositoryID: "186853002", RepositoryURL: "https://git.acme.test/acme/site", Former: "acme/web",
		State: &State{DefaultBranch: "main", Visibility: "private"},
	}
	moved, archived, gone := renamed, renamed, renamed
	moved.Former = "globex/site"
	archived.Former, archived.State = "", &State{DefaultBranch: "main", Visibility: "public", Archived: true}
	gone.Kind, gone.Former, gone.State = Deleted, "", nil
	branch := Event{
		Kind: BranchDeleted, Ref: "refs/heads/feature/login", Repository: "acme/web", RepositoryID: "186853002", RepositoryURL: "https://git.acme.test/acme/web",
	}
	gitLabBranch := Event{
		Kind: BranchDeleted, Ref: "refs/heads/feature/login", Repository: "acme/platform/api", RepositoryID: "5", RepositoryURL: "https://git.acme.test/acme/platform/api",
	}
	destroyed := Event{Kind: Deleted, Repository: "acme/platform/api", RepositoryID: "5"}
	transferred := Event{Kind: Changed, Repository: "acme/platform/api", RepositoryID: "5", Former: "acme/api"}
	inAzure := func(kind Kind) Event {
		return Event{Kind: kind, At: at, Repository: "tools/web", RepositoryID: "2f3d611a-f012-4b39-b157-000000000001"}
	}
	completed, abandoned, azureNote, azureBranch := inAzure(Closed), inAzure(Closed), inAzure(Commented), inAzure(BranchDeleted)
	azurePushed := inAzure(Pushed)
	azurePushed.Number, azurePushed.Commit = 17, "eef717f69257a6333f221566c1c987dc94cc0d72"
	opened, gitLabOpened := closed, request
	opened.Kind, opened.Commit = Pushed, "34c5c7793cb3b279e22454cb6750c80560547b3a"
	gitLabOpened.Kind, gitLabOpened.Commit = Pushed, "da1560886d4f094c3e6c9ef40349f7d38b5d27d7"
	completed.Number, completed.Merged, abandoned.Number, azureNote.Number = 17, true, 17, 17
	azureNote.Comment = Comment{ID: "17/100/2", Thread: "100", Body: "/fp the input is a constant", Author: "octavia"}
	azureBranch.Ref, azureBranch.MoreRefs = "refs/heads/topic", []string{"refs/heads/other"}
	const from = `{"repository": {"name": {"from": "web"}}}`
	for name, test := range map[string]struct {
		host Host
		name string
		body []byte
		want Event
	}{
		"renamed":         {GitHub, "repository", payload(t, "github_repository"), renamed},
		"transferred":     {GitHub, "repository", payload(t, "github_repository", `"renamed"`, `"transferred"`, from, `{"owner": {"from": {"organization": {"login": "globex"}}}}`), moved},
		"archived":        {GitHub, "repository", payload(t, "github_repository", `"renamed"`, `"archived"`, from, `{}`, `"archived": false`, `"archived": true`, `"private": true`, `"private": false`), archived},
		"deleted":         {GitHub, "repository", payload(t, "github_repository", `"renamed"`, `"deleted"`, from, `{}`), gone},
		"other action":    {GitHub, "repository", payload(t, "github_repository", `"renamed"`, `"reported"`), Event{}},
		"deleted branch":  {GitHub, "delete", payload(t, "github_delete"), branch},
		"deleted tag":     {GitHub, "delete", payload(t, "github_delete", `"ref_type": "branch"`, `"ref_type": "tag"`), Event{}},
		"deleting push":   {GitHub, "push", payload(t, "github_delete", `"ref": "feature/login"`, `"deleted": true, "ref": "refs/heads/feature/login"`), branch},
		"other push":      {GitHub, "push", payload(t, "github_delete", `"ref": "feature/login"`, `"deleted": false, "ref": "refs/heads/feature/login"`), Event{}},
		"GitLab's branch": {GitLab, "Push Hook", payload(t, "gitlab_push"), gitLabBranch},
		"GitLab's push":   {GitLab, "Push Hook", payload(t, "gitlab_push", `"after": "0000000000000000000000000000000000000000"`, `"after": "95790bf8"`), Event{}},
		"destroyed":       {GitLab, "Project Hook", payload(t, "gitlab_project"), destroyed},
		"system hook": {GitLab, "System Hook", payload(t, "gitlab_project", `"project_destroy"`, `"project_transfer"`, `"path": "api"`, `"old_path_with_namespace": "acme/api"`),
			transferred},
		"completed":           {AzureDevOps, "", payload(t, "azure_pull_request"), completed},
		"merge attempt":       {AzureDevOps, "", payload(t, "azure_pull_request", `"git.pullrequest.updated"`, `"git.pullrequest.merged"`), completed},
		"abandoned":           {AzureDevOps, "", payload(t, "azure_pull_request", `"completed"`, `"abandoned"`), abandoned},
		"active":              {AzureDevOps, "", payload(t, "azure_pull_request", `"completed"`, `"active"`), azurePushed},
		"opened there":        {AzureDevOps, "", payload(t, "azure_pull_request", `"git.pullrequest.updated"`, `"git.pullrequest.created"`, `"completed"`, `"active"`), azurePushed},
		"created":             {AzureDevOps, "", payload(t, "azure_pull_request", `"git.pullrequest.updated"`, `"git.pullrequest.created"`), Event{}},
		"not closed yet":      {AzureDevOps, "", payload(t, "azure_pull_request", `"closedDate": "2026-05-04T10:20:30Z",`, ``), completed},
		"Azure's comment":     {AzureDevOps, "", payload(t, "azure_comment"), azureNote},
		"Azure's first":       {AzureDevOps, "", payload(t, "azure_comment", `"id": 2,`, `"id": 1,`), Event{}},
		"Azure's system":      {AzureDevOps, "", payload(t, "azure_comment", `"commentType": "text"`, `"commentType": "system"`), Event{}},
		"Azure's deleted one": {AzureDevOps, "", payload(t, "azure_comment", `"commentType": "text"`, `"isDeleted": true`), Event{}},
		"Azure's branches":    {AzureDevOps, "", payload(t, "azure_push"), azureBranch},
		"Azure's push":        {AzureDevOps, "", payload(t, "azure_push", "0000000000000000000000000000000000000000", "33b55f7cb7e7e245323987634f960cf4a6e6bc75"), Event{}},
		"work item":           {AzureDevOps, "", []byte(`{"eventType":"workitem.created"}`), Event{}},

		"closed":            {GitHub, "pull_request", payload(t, "github_pull_request"), closed},
		"merged":            {GitHub, "pull_request", payload(t, "github_pull_request", `"merged": false`, `"merged": true`), merged},
		"opened":            {GitHub, "pull_request", payload(t, "github_pull_request", `"closed",`, `"opened",`), opened},
		"synchronized":      {GitHub, "pull_request", payload(t, "github_pull_request", `"closed",`, `"synchronize",`), opened},
		"labeled":           {GitHub, "pull_request", payload(t, "github_pull_request", `"closed",`, `"labeled",`), Event{}},
		"comment":           {GitHub, "pull_request_review_comment", payload(t, "github_comment"), comment},
		"outdated":          {GitHub, "pull_request_review_comment", payload(t, "github_comment", `"line": 42,`, `"line": null,`), outdated},
		"edited":            {GitHub, "pull_request_review_comment", payload(t, "github_comment", `"created",`, `"edited",`), Event{}},
		"first of a thread": {GitHub, "pull_request_review_comment", payload(t, "github_comment", `"in_reply_to_id": 5101,`, ``), Event{}},
		"bot":               {GitHub, "pull_request_review_comment", payload(t, "github_comment", `"type": "User"`, `"type": "Bot"`), bot},
		"from an app":       {GitHub, "pull_request_review_comment", payload(t, "github_comment", `"organization"`, `"installation": {"id": 8801}, "organization"`), fromApp},
		"zero characters":   {GitHub, "pull_request_review_comment", payload(t, "github_comment", `/fp the input is a constant`, `/fp \u0000zero`), cleaned},
		"installed":         {GitHub, "installation", payload(t, "github_installation"), installed},
		"time as text":      {GitHub, "installation", payload(t, "github_installation", `"updated_at": 1777890030`, `"updated_at": "2026-05-04T10:20:30Z"`), installed},
		"no time":           {GitHub, "installation", payload(t, "github_installation", `"updated_at": 1777890030`, `"updated_at": null`), timeless},
		"far future":        {GitHub, "installation", payload(t, "github_installation", `"updated_at": 1777890030`, `"updated_at": 900000000000000`), timeless},
		"suspended":         {GitHub, "installation", payload(t, "github_installation", `"created",`, `"suspend",`), suspended},
		"uninstalled":       {GitHub, "installation", payload(t, "github_installation", `"created",`, `"deleted",`), deleted},
		"ping":              {GitHub, "ping", []byte(`{"zen":"Design for failure.","hook_id":9001}`), Event{}},
		"no name":           {GitHub, "", []byte(`{}`), Event{}},
		"other host's name": {GitLab, "pull_request", payload(t, "github_pull_request"), Event{}},
		"request closed":    {GitLab, "Merge Request Hook", payload(t, "gitlab_merge_request"), request},
		"request merged":    {GitLab, "Merge Request Hook", payload(t, "gitlab_merge_request", `"state": "closed"`, `"state": "merged"`), requestMerged},
		"request opened":    {GitLab, "Merge Request Hook", payload(t, "gitlab_merge_request", `"state": "closed"`, `"state": "opened"`), Event{}},
		"request pushed": {GitLab, "Merge Request Hook", payload(t, "gitlab_merge_request", `"state": "closed"`, `"state": "opened"`,
			`"action": "close"`, `"action": "update", "oldrev": "1", "last_commit": {"id": "da1560886d4f094c3e6c9ef40349f7d38b5d27d7"}`), gitLabOpened},
		"request changed":   {GitLab, "Merge Request Hook", payload(t, "gitlab_merge_request", `"state": "closed"`, `"state": "opened"`, `"action": "close"`, `"action": "update"`), Event{}},
		"GitLab's time":     {GitLab, "Merge Request Hook", payload(t, "gitlab_merge_request", `2026-05-04T10:20:30Z`, `2026-05-04 10:20:30 UTC`), request},
		"note":              {GitLab, "Note Hook", payload(t, "gitlab_note"), note},
		"note of a bot":     {GitLab, "Note Hook", payload(t, "gitlab_note", `"mona"`, `"project_5_bot_1f2e3d"`), botNote},
		"note on no line":   {GitLab, "Note Hook", payload(t, "gitlab_note", `"position": {`, `"original_position": {`), general},
		"note of no thread": {GitLab, "Note Hook", payload(t, "gitlab_note", `"DiffNote"`, `null`), Event{}},
		"note on a commit":  {GitLab, "Note Hook", payload(t, "gitlab_note", `"MergeRequest"`, `"Commit"`), Event{}},
		"changed note":      {GitLab, "Note Hook", payload(t, "gitlab_note", `"create"`, `"update"`), Event{}},
		"system note":       {GitLab, "Note Hook", payload(t, "gitlab_note", `"system": false`, `"system": true`), Event{}},
	} {
		got, err := Parse(test.host, test.name, test.body)
		if got.At.Equal(test.want.At) {
			got.At = test.want.At
		}
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, %v\nwant %+v", name, got, err, test.want)
		}
	}
}

func TestParseMalformed(t *testing.T) {
	for name, test := range map[string]struct {
		host Host
		name string
		body string
	}{
		"no JSON":               {GitHub, "pull_request", `action=closed`},
		"empty":                 {GitHub, "pull_request", ``},
		"a list":                {GitHub, "pull_request", `[]`},
		"other types":           {GitHub, "pull_request", `{"action":"closed","pull_request":{"number":"17"}}`},
		"no repository":         {GitHub, "pull_request", `{"action":"closed","pull_request":{"number":17}}`},
		"no number":             {GitHub, "pull_request", `{"action":"closed","repository":{"full_name":"acme/web"}}`},
		"control characters":    {GitHub, "pull_request", `{"action":"closed","pull_request":{"number":17},"repository":{"full_name":"acme/w\u0000eb"}}`},
		"a long name":           {GitHub, "pull_request", `{"action":"closed","pull_request":{"number":17},"repository":{"full_name":"acme/` + strings.Repeat("w", 5000) + `"}}`},
		"no author":             {GitHub, "pull_request_review_comment", `{"action":"created","comment":{"id":1,"in_reply_to_id":2,"body":"/fp x"},"pull_request":{"number":1},"repository":{"full_name":"acme/web"}}`},
		"no id of a repository": {GitHub, "repository", `{"action":"renamed","repository":{"full_name":"acme/web"}}`},
		"no name":               {GitHub, "delete", `{"ref":"x","ref_type":"branch","repository":{"id":1}}`},
		"no account":            {GitHub, "installation", `{"action":"created","installation":{"id":1}}`},
		"GitLab without iid":    {GitLab, "Merge Request Hook", `{"project":{"path_with_namespace":"acme/web"},"object_attributes":{"state":"closed"}}`},
		"GitLab without a user": {GitLab, "Note Hook", `{"project":{"path_with_namespace":"acme/web"},"merge_request":{"iid":1},"object_attributes":{"id":1,"discussion_id":"d","note":"/fp x","noteable_type":"MergeRequest","type":"DiffNote"}}`},
		"Azure, no JSON":        {AzureDevOps, "", `{"eventType":`},
		"Azure, no repository":  {AzureDevOps, "", `{"eventType":"git.pullrequest.updated","resource":{"status":"completed","pullRequestId":1}}`},
		"Azure, no id":          {AzureDevOps, "", `{"eventType":"git.push","resource":{"refUpdates":[{"name":"refs/heads/x","newObjectId":"` + noCommit + `"}],"repository":{"name":"w","project":{"name":"t"}}}}`},
		"Azure, no thread":      {AzureDevOps, "", `{"eventType":"ms.vss-code.git-pullrequest-comment-event","resource":{"comment":{"id":2,"author":{"uniqueName":"a"}},"pullRequest":{"pullRequestId":1,"repository":{"id":"1","name":"w","project":{"name":"t"}}}}}`},
	} {
		if e, err := Parse(test.host, test.name, []byte(test.body)); !errors.Is(err, ErrMalformed) || !reflect.DeepEqual(e, Event{}) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for name, file := range map[string]string{
		"pull_request": "github_pull_request", "pull_request_review_comment": "github_comment", "installation": "github_installation",
		"repository": "github_repository", "delete": "github_delete", "push": "github_delete",
		"Merge Request Hook": "gitlab_merge_request", "Note Hook": "gitlab_note", "Push Hook": "gitlab_push", "Project Hook": "gitlab_project",
	} {
		f.Add(strings.Contains(name, "Hook"), name, payload(f, file))
	}
	for _, file := range []string{"azure_pull_request", "azure_comment", "azure_push"} {
		f.Add(false, "", payload(f, file))
	}
	f.Fuzz(func(t *testing.T, lab bool, name string, body []byte) {
		host := GitHub
		switch {
		case lab:
			host = GitLab
		case name == "":
			host = AzureDevOps
		}
		e, err := Parse(host, name, body)
		if err != nil {
			if !errors.Is(err, ErrMalformed) || !reflect.DeepEqual(e, Event{}) {
				t.Errorf("%+v, %v", e, err)
			}
			return
		}
		for _, text := range []string{e.Repository, e.Comment.Body, e.Comment.Author, e.Comment.Thread, e.Comment.Path, e.Installation.Namespace} {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				t.Errorf("%q cannot be stored", text)
			}
		}
		if (e.Kind == Closed || e.Kind == Commented) && (e.Number <= 0 || !strings.Contains(e.Repository, "/")) {
			t.Errorf("%+v", e)
		}
	})
}
