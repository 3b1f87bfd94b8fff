package supplychain_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/packagemanagerconfig"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/secret"
)

// example is the request of the contract facts, 3.3.
const example = `{"packageManagerConfigForInsert":{"config":{"name":"corp-maven","url":"https://repo.acme.test/maven","requiresAuth":true,` +
	`"ecosystem":"maven","additionalConfig":{"maven":{"repositoryType":"MAVEN_REPOSITORY_TYPE_BOTH"}},` +
	`"registryType":"REGISTRY_TYPE_PACKAGE_MANAGER_AUTH"},"maven":{"username":"ci","password":"s3"}}}`

// Configurations of tests: one per kind of credentials, one without, and a malware firewall.
const (
	mavenConfig = `{"config":{"name":"corp-maven","url":"https://repo.acme.test/maven","requiresAuth":true,"ecosystem":"maven",
		"additionalConfig":{"maven":{"repositoryType":"MAVEN_REPOSITORY_TYPE_RELEASE"},"pypi":{},"npm":{"scope":null}}},"maven":{"username":"ci","password":"s3"}}`
	pypiConfig = `{"config":{"name":"corp-pypi","url":"https://repo.acme.test/simple","requiresAuth":true,"ecosystem":"pypi","additionalConfig":{"pypi":{}}},
		"pypi":{"username":"ci","password":"s3"}}`
	artifactConfig = `{"config":{"name":"aws","url":"https://acme-123456789012.d.codeartifact.eu-west-1.amazonaws.com/npm/web/","requiresAuth":true,
		"ecosystem":"npm","useNetworkBroker":true},"codeArtifact":{"assumeRoleArn":"arn:aws:iam::123456789012:role/scans/palisade"}}`
	npmConfig = `{"config":{"name":"corp-npm","url":"https://repo.acme.test/npm/","requiresAuth":true,"ecosystem":"npm",
		"additionalConfig":{"npm":{"scope":"@acme"}}},"npm":{"token":"t0"}}`
	basicConfig = `{"config":{"name":"corp-npm-2","url":"https://repo.acme.test/npm2/","requiresAuth":true,"ecosystem":"npm"},
		"npm":{"token":"","basicAuth":{"username":"ci","password":"s3"}},"maven":{"username":"","password":""},"pypi":{},"codeArtifact":null}`
	publicConfig   = `{"config":{"name":"mirror","url":"https://mirror.acme.test"}}`
	firewallConfig = `{"config":{"name":"firewall","url":"*.Registry.acme.test:8443","ecosystem":"no_package_manager","registryType":"REGISTRY_TYPE_MALWARE_FIREWALL"}}`
)

func TestPackageManagers(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		apitest.Golden(t, "list_empty", s.Get(t, s.path()))
		apitest.Golden(t, "create_example", s.mustDo(t, http.MethodPost, s.path(), example))
		s.mustDo(t, http.MethodDelete, s.path()+"/1", "")
		for _, c := range []struct{ name, body string }{
			{"create_public", publicConfig}, {"create_maven", mavenConfig}, {"create_pypi", pypiConfig}, {"create_code_artifact", artifactConfig},
			{"create_npm", npmConfig}, {"create_npm_basic", basicConfig}, {"create_firewall", firewallConfig},
		} {
			apitest.Golden(t, c.name, s.create(t, c.body))
		}
		list := s.Get(t, s.path())
		apitest.Golden(t, "list", list)
		client, ctx := supplychainv1.NewPackageManagerConfigurationsServiceClient(s.Conn), s.Context(t, s.Token)
		response, err := client.GetPackageManagerAuthConfigs(ctx, &supplychainv1.GetPackageManagerAuthConfigsRequest{DeploymentId: s.DeploymentID})
		same(t, list)(response, err)

		// Numbers may be strings, and names may be long in any script.
		long := strings.Repeat("日", 255)
		mustContain(t, s.create(t, `{"config":{"name":"`+long+`","url":"https://mirror.acme.test","id":99,"deploymentId":"7"}}`),
			fmt.Sprintf(`"deploymentId":%d`, s.DeploymentID), long)
		apitest.Golden(t, "delete", s.mustDo(t, http.MethodDelete, s.path()+"/2", ""))
		apitest.Golden(t, "delete_again", s.Body(t, s.Token, http.MethodDelete, s.path()+"/2", "", 404))
		apitest.Golden(t, "update_absent", s.Body(t, s.Token, http.MethodPatch, s.path()+"/2", `{"packageManagerConfigForInsert":{}}`, 404))
	})
}

func TestPackageManagersOverGRPC(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		client, ctx := supplychainv1.NewPackageManagerConfigurationsServiceClient(s.Conn), s.Context(t, s.Token)
		created, err := client.PostPackageManagerAuthCredentials(ctx, &supplychainv1.PostPackageManagerAuthCredentialsRequest{
			DeploymentId: s.DeploymentID, PackageManagerConfigForInsert: &supplychainv1.PackageManagerConfigForInsert{
				Config: &supplychainv1.PackageManagerConfigInput{
					Name: proto.String("corp-npm"), Url: proto.String("https://repo.acme.test/npm/"), RequiresAuth: proto.Bool(true),
					Ecosystem:        proto.String("npm"),
					AdditionalConfig: &supplychainv1.AdditionalConfig{Npm: &supplychainv1.NpmConfig{Scope: proto.String("@acme")}},
				},
				Npm: &supplychainv1.NpmCredentials{Token: "t0"},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		id := created.GetPackageManagerConfig().GetId()
		updated, err := client.UpdatePackageManagerAuthCredentials(ctx, &supplychainv1.UpdatePackageManagerAuthCredentialsRequest{
			DeploymentId: s.DeploymentID, PackageManagerConfigId: id,
			PackageManagerConfigForInsert: &supplychainv1.PackageManagerConfigForInsert{
				Config: &supplychainv1.PackageManagerConfigInput{Name: proto.String("npm")},
			},
		})
		same(t, s.mustDo(t, http.MethodPatch, fmt.Sprintf("%s/%d", s.path(), id), `{"packageManagerConfigForInsert":{}}`))(updated, err)
		_, err = client.UpdatePackageManagerAuthCredentials(ctx, &supplychainv1.UpdatePackageManagerAuthCredentialsRequest{
			DeploymentId: s.DeploymentID, PackageManagerConfigId: id,
			PackageManagerConfigForInsert: &supplychainv1.PackageManagerConfigForInsert{
				Config: &supplychainv1.PackageManagerConfigInput{Name: proto.String("")},
			},
		})
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("an empty name: %v", err)
		}
		deleted, err := client.DeletePackageManagerAuthConfigs(ctx, &supplychainv1.DeletePackageManagerAuthConfigsRequest{
			DeploymentId: s.DeploymentID, PackageManagerConfigId: id,
		})
		same(t, fmt.Sprintf(`{"packageManagerConfigId":%d}`, id))(deleted, err)
	})
}

func TestUpdatePackageManager(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		s.create(t, mavenConfig)
		s.create(t, publicConfig)
		one := s.path() + "/1"
		sealed := s.sealed(t, 1)
		patch := func(body string) string {
			t.Helper()
			return s.mustDo(t, http.MethodPatch, one, `{"deploymentId":7,"packageManagerConfigId":2,"packageManagerConfigForInsert":`+body+`}`)
		}
		before := s.Get(t, s.path())
		patch(`{}`)
		patch(`{"config":{}}`)
		if after := s.Get(t, s.path()); after != before {
			t.Errorf("an empty change changed %s to %s", before, after)
		}
		apitest.Golden(t, "update", patch(`{"config":{"name":"maven-2","url":"https://repo2.acme.test/maven"}}`))
		if string(s.sealed(t, 1)) != string(sealed) {
			t.Error("a change of the name touched the credentials")
		}
		mustContain(t, patch(`{"maven":{"username":"ci2","password":"s4"}}`), `"name":"maven-2"`)
		s.wantCredentials(t, 1, &supplychainv1.PackageManagerConfigForInsert{Maven: &supplychainv1.MavenCredentials{Username: "ci2", Password: "s4"}})

		// A change that the stored credentials do not fit is rejected unless it includes new ones.
		mustContain(t, s.Body(t, s.Token, http.MethodPatch, one, `{"packageManagerConfigForInsert":{"config":{"ecosystem":"pypi"}}}`, 400),
			"the ecosystem pypi takes the credentials pypi or codeArtifact, got maven: send the right ones")
		mustContain(t, s.Body(t, s.Token, http.MethodPatch, one, `{"packageManagerConfigForInsert":{"config":{"ecosystem":"cargo"}}}`, 400),
			`ecosystem \"cargo\" takes no credentials; these ecosystems do: maven (maven or codeArtifact), npm (npm or codeArtifact), pypi (pypi or codeArtifact)`)
		mustContain(t, s.Body(t, s.Token, http.MethodPatch, one, `{"packageManagerConfigForInsert":{"config":{"registryType":"REGISTRY_TYPE_MALWARE_FIREWALL","url":"acme.test"}}}`, 400),
			"requiresAuth must be false for REGISTRY_TYPE_MALWARE_FIREWALL")
		apitest.Golden(t, "update_ecosystem", patch(`{"config":{"ecosystem":"pypi"},"codeArtifact":{"assumeRoleArn":"arn:aws-cn:iam::123456789012:role/r"}}`))
		mustContain(t, patch(`{"config":{"ecosystem":"npm"}}`), `"ecosystem":"npm"`, `"additionalConfig":{}`) // codeArtifact is also valid here

		// Disabling authentication deletes the credentials permanently.
		mustContain(t, patch(`{"config":{"requiresAuth":false}}`), `"requiresAuth":false`)
		if got := s.sealed(t, 1); got != nil {
			t.Errorf("credentials are left: %x", got)
		}
		mustContain(t, s.Body(t, s.Token, http.MethodPatch, one, `{"packageManagerConfigForInsert":{"config":{"requiresAuth":true}}}`, 400),
			"must contain the credentials npm or codeArtifact")
		apitest.Golden(t, "update_to_firewall", patch(`{"config":{"registryType":"REGISTRY_TYPE_MALWARE_FIREWALL","url":"*.acme.test"}}`))
		mustContain(t, patch(`{"config":{"registryType":"REGISTRY_TYPE_PACKAGE_MANAGER_AUTH","url":"https://acme.test"}}`), `"ecosystem":"no_package_manager"`)
		mustContain(t, s.Body(t, s.Token, http.MethodPatch, one, `{"packageManagerConfigForInsert":{"config":{"name":"mirror"}}}`, 409),
			`a package manager config with the name \"mirror\" exists in this deployment`)
	})
}

// TestAllowedRegistries: plain HTTP and private addresses require an entry in the operator's allow list.
func TestAllowedRegistries(t *testing.T) {
	s := caller{apitest.Start(t, func(c *config.Config) { c.EgressAllow = "repo.internal,10.1.0.0/16" })}
	s.create(t, `{"config":{"name":"a","url":"http://repo.internal/maven"}}`)
	s.create(t, `{"config":{"name":"b","url":"http://10.1.2.3:8081/npm"}}`)
	s.Body(t, s.Token, http.MethodPost, s.path(), `{"packageManagerConfigForInsert":{"config":{"name":"c","url":"http://10.2.0.1/npm"}}}`, 400)
}

// sealed is the stored form of a configuration's credentials.
func (c caller) sealed(t *testing.T, id int64) []byte {
	t.Helper()
	return c.Store.Reader.PackageManagerConfig.Query().Where(packagemanagerconfig.ID(id)).OnlyX(c.System(t)).Credentials
}

// wantCredentials unseals the credentials of a row, and requires that they cannot be unsealed for another.
func (c caller) wantCredentials(t *testing.T, id int64, want *supplychainv1.PackageManagerConfigForInsert) {
	t.Helper()
	keyring, err := secret.Open(filepath.Join(c.Config.Data, "palisade.key"), false)
	if err != nil {
		t.Fatal(err)
	}
	sealed := c.sealed(t, id)
	plain, err := keyring.Unseal(sealed, fmt.Appendf(nil, "package_manager_config/%d", id))
	if err != nil {
		t.Fatal(err)
	}
	got := &supplychainv1.PackageManagerConfigForInsert{}
	if err := proto.Unmarshal(plain, got); err != nil || !proto.Equal(got, want) {
		t.Errorf("config %d has other credentials than were sent (%v)", id, err)
	}
	if _, err := keyring.Unseal(sealed, fmt.Appendf(nil, "package_manager_config/%d", id+1)); err == nil {
		t.Error("the credentials open in another row")
	}
}

func TestCredentialsAreSealed(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		for _, body := range []string{mavenConfig, pypiConfig, artifactConfig, npmConfig, basicConfig} {
			s.create(t, body)
		}
		for i, want := range []*supplychainv1.PackageManagerConfigForInsert{
			{Maven: &supplychainv1.MavenCredentials{Username: "ci", Password: "s3"}},
			{Pypi: &supplychainv1.PypiCredentials{Username: "ci", Password: "s3"}},
			{CodeArtifact: &supplychainv1.CodeArtifactCredentials{AssumeRoleArn: "arn:aws:iam::123456789012:role/scans/palisade"}},
			{Npm: &supplychainv1.NpmCredentials{Token: "t0"}},
			{Npm: &supplychainv1.NpmCredentials{BasicAuth: &supplychainv1.NpmCredentials_BasicAuth{Username: "ci", Password: "s3"}}},
		} {
			s.wantCredentials(t, int64(i+1), want)
		}
	})
}

func TestPackageManagersOfOthers(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		other := s.AddTenant(t, "umbrella")
		s.create(t, mavenConfig)
		before := s.Get(t, s.path())
		absent := s.Body(t, other.Token, http.MethodGet, "/api/agent/deployments/999/packagemanagerauthconfigs", "", 404)
		own := fmt.Sprintf("/api/agent/deployments/%d/packagemanagerauthconfigs", other.DeploymentID)
		change := `{"packageManagerConfigForInsert":{"config":{"name":"x"}}}`
		for _, call := range []struct{ method, path, body string }{
			{http.MethodGet, "", ""}, {http.MethodPost, "", example}, {http.MethodPatch, "/1", change}, {http.MethodDelete, "/1", ""},
		} {
			if got := s.Body(t, other.Token, call.method, s.path()+call.path, call.body, 404); got != absent {
				t.Errorf("%s %s of another tenant: %s, want what an absent deployment gets: %s", call.method, call.path, got, absent)
			}
			if call.path == "" {
				continue
			}
			if got, want := s.Body(t, other.Token, call.method, own+"/1", call.body, 404), s.Body(t, other.Token, call.method, own+"/777", call.body, 404); got != strings.ReplaceAll(want, "777", "1") {
				t.Errorf("%s in the own deployment: %s, want what an unknown id gets: %s", call.method, got, want)
			}
		}
		// The path sets the deployment; the body's is ignored.
		body := strings.Replace(example, "{", fmt.Sprintf(`{"deploymentId":%d,`, s.DeploymentID), 1)
		mustContain(t, s.Body(t, other.Token, http.MethodPost, own, body, 200), fmt.Sprintf(`"deploymentId":%d`, other.DeploymentID))
		// Names are unique per deployment.
		if after := s.Get(t, s.path()); after != before {
			t.Errorf("another tenant changed %s to %s", before, after)
		}
		for _, token := range []string{
			s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleMember}),
			s.AddUser(t, s.Tenant, "dana@acme.test", access.RoleReadOnly),
		} {
			s.Body(t, token, http.MethodGet, s.path(), "", 403)
			s.Body(t, token, http.MethodPost, s.path(), example, 403)
		}
	})
}

func TestBadPackageManagers(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		for body, want := range badConfigs() {
			mustContain(t, s.Body(t, s.Token, http.MethodPost, s.path(), `{"packageManagerConfigForInsert":`+body+`}`, 400), want)
		}
		mustContain(t, s.Body(t, s.Token, http.MethodPost, s.path(), `{}`, 400), "packageManagerConfigForInsert is required")
		if n := s.Store.Reader.PackageManagerConfig.Query().CountX(s.System(t)); n != 0 {
			t.Errorf("%d configs were stored", n)
		}
		s.create(t, mavenConfig)
		mustContain(t, s.Body(t, s.Token, http.MethodPost, s.path(), example, 409), `"code":"ALREADY_EXISTS"`)
		if n := s.Store.Reader.PackageManagerConfig.Query().CountX(s.System(t)); n != 1 {
			t.Errorf("%d configs, want 1", n)
		}
		s.Body(t, s.Token, http.MethodDelete, s.path()+"/one", "", 404)
	})
}

// badConfigs maps packageManagerConfigForInsert to the expected error text.
func badConfigs() map[string]string {
	config := func(fields, credentials string) string {
		return `{"config":{"name":"n","url":"https://repo.acme.test"` + fields + `}` + credentials + `}`
	}
	const maven, auth = `,"maven":{"username":"ci","password":"s3"}`, `,"requiresAuth":true,"ecosystem":`
	const arn = `,"codeArtifact":{"assumeRoleArn":`
	firewall := func(fields, credentials string) string {
		return `{"config":{"name":"n","url":"acme.test","registryType":"REGISTRY_TYPE_MALWARE_FIREWALL"` + fields + `}` + credentials + `}`
	}
	return map[string]string{
		`{}`: "config.name must have 1 to 255 characters",
		`{"config":{"url":"https://repo.acme.test"}}`:                                                                 "config.name must have 1 to 255 characters",
		`{"config":{"name":" ","url":"https://repo.acme.test"}}`:                                                      "config.name must have 1 to 255 characters, and not only spaces",
		`{"config":{"name":"` + strings.Repeat("日", 256) + `","url":"https://repo.acme.test"}}`:                       "config.name must have at most 255 characters, got 256",
		`{"config":{"name":"n"}}`:                                                                                     "config.url is required",
		`{"config":{"name":"n","url":"repo.acme.test"}}`:                                                              "config.url must be an https:// URL with a host",
		`{"config":{"name":"n","url":"http://repo.acme.test"}}`:                                                       "config.url must be an https:// URL",
		`{"config":{"name":"n","url":"https://127.0.0.1/"}}`:                                                          "config.url must be an https:// URL with a public host",
		`{"config":{"name":"n","url":"https://ci:s3@repo.acme.test"}}`:                                                "config.url must be an https:// URL without user and password",
		`{"config":{"name":"n","url":"https://repo.acme.test?token=s3"}}`:                                             "config.url must be an https:// URL without query and fragment",
		`{"config":{"name":"n","url":"https://repo.acme.test/` + strings.Repeat("a", 2048) + `"}}`:                    "config.url must have at most 2048 characters",
		config(`,"ecosystem":"conan"`, ""):                                                                            `config.ecosystem must be one of no_package_manager, npm, pypi`,
		config(`,"registryType":"REGISTRY_TYPE_X"`, ""):                                                               "config.registryType must be one of REGISTRY_TYPE_PACKAGE_MANAGER_AUTH, REGISTRY_TYPE_MALWARE_FIREWALL",
		config(`,"registryType":9`, ""):                                                                               "config.registryType must be one of",
		config(`,"requiresAuth":"maybe"`, ""):                                                                         "config.requiresAuth must be true or false",
		config(``, maven):                                                                                             "packageManagerConfigForInsert.maven must be absent when packageManagerConfigForInsert.config.requiresAuth is false",
		config(`,"ecosystem":"maven"`, maven):                                                                         "must be absent when",
		config(auth+`"maven"`, ""):                                                                                    "must contain the credentials maven or codeArtifact",
		config(auth+`"maven"`, `,"maven":{}`):                                                                         "must contain the credentials maven or codeArtifact",
		config(`,"requiresAuth":true`, ""):                                                                            `ecosystem \"no_package_manager\" takes no credentials; these ecosystems do: maven`,
		config(auth+`"gomod"`, maven):                                                                                 `ecosystem \"gomod\" takes no credentials`,
		config(auth+`"npm"`, maven):                                                                                   "the ecosystem npm takes the credentials npm or codeArtifact, got maven",
		config(auth+`"maven"`, `,"pypi":{"username":"ci","password":"s3"}`):                                           "takes the credentials maven or codeArtifact, got pypi",
		config(auth+`"pypi"`, `,"npm":{"token":"s3"}`):                                                                "takes the credentials pypi or codeArtifact, got npm",
		config(auth+`"maven"`, maven+`,"npm":{"token":"s3"}`):                                                         "takes one kind of credentials, got 2: maven, npm",
		config(auth+`"maven"`, maven+arn+`"arn:aws:iam::123456789012:role/r"}`):                                       "takes one kind of credentials, got 2: maven, codeArtifact",
		config(auth+`"maven"`, `,"maven":{"username":"ci"}`):                                                          "maven.password must not be empty",
		config(auth+`"pypi"`, `,"pypi":{"password":"s3"}`):                                                            "pypi.username must not be empty",
		config(auth+`"npm"`, `,"npm":{"token":"s3","basicAuth":{"username":"ci","password":"s3"}}`):                   "npm takes token or basicAuth, got both",
		config(auth+`"npm"`, `,"npm":{"basicAuth":{"username":"ci"}}`):                                                "npm.basicAuth.password must not be empty",
		config(auth+`"npm"`, arn+`"role/palisade"}`):                                                                  "codeArtifact.assumeRoleArn: must be the ARN of an IAM role",
		config(auth+`"npm"`, arn+`"arn:aws:iam::12345:role/palisade"}`):                                               "must be the ARN of an IAM role",
		config(auth+`"npm"`, arn+`"arn:aws:iam::123456789012:user/palisade"}`):                                        "must be the ARN of an IAM role",
		config(auth+`"maven"`, `,"maven":{"username":"ci","password":"`+strings.Repeat("s", 8193)+`"}`):               "maven.password must have at most 8192 characters",
		config(`,"ecosystem":"npm","additionalConfig":{"maven":{"repositoryType":"MAVEN_REPOSITORY_TYPE_BOTH"}}`, ""): "repositoryType is only for the ecosystem maven, got MAVEN_REPOSITORY_TYPE_BOTH",
		config(`,"additionalConfig":{"npm":{"scope":"@acme"}}`, ""):                                                   "npm.scope is only for the ecosystem npm",
		config(`,"ecosystem":"maven","additionalConfig":{"maven":{"repositoryType":"MAVEN_REPOSITORY_TYPE_X"}}`, ""):  "repositoryType must be one of MAVEN_REPOSITORY_TYPE_RELEASE",
		firewall(`,"ecosystem":"npm"`, ""):                                                                            "ecosystem must be absent for REGISTRY_TYPE_MALWARE_FIREWALL",
		firewall(``, maven):                                                                                           "packageManagerConfigForInsert.maven must be absent for REGISTRY_TYPE_MALWARE_FIREWALL",
		firewall(`,"requiresAuth":true`, ""):                                                                          "requiresAuth must be false for REGISTRY_TYPE_MALWARE_FIREWALL",
		firewall(`,"url":"https://acme.test"`, ""):                                                                    "config.url must be",
		config(`,"registryType":"REGISTRY_TYPE_MALWARE_FIREWALL"`, ""):                                                "config.url must be",
	}
}

// TestPackageManagersAreAudited: each change records the state before and after, and the public part of the request.
func TestPackageManagersAreAudited(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := caller{server}
		s.create(t, mavenConfig)
		s.mustDo(t, http.MethodPatch, s.path()+"/1", `{"packageManagerConfigForInsert":{"config":{"url":"https://repo2.acme.test"}}}`)
		s.mustDo(t, http.MethodPatch, s.path()+"/1", `{"packageManagerConfigForInsert":{}}`)
		s.mustDo(t, http.MethodDelete, s.path()+"/1", "")
		s.Get(t, s.path())
		var got []string
		for _, entry := range s.Store.Reader.AuditEntry.Query().Order(ent.Asc(auditentry.FieldID)).AllX(s.System(t)) {
			line := entry.Code + " " + entry.Request
			for _, change := range entry.Changes {
				line += fmt.Sprintf("\n  %s %s\n    from %s\n    to   %s", change.Kind, change.ID, change.Before, change.After)
			}
			got = append(got, line)
		}
		apitest.Golden(t, "audit", strings.Join(got, "\n")+"\n")
	})
}
