package supplychain

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/supplychain/registry"
)

const (
	packageManagerAuth = supplychainv1.RegistryType_REGISTRY_TYPE_PACKAGE_MANAGER_AUTH
	malwareFirewall    = supplychainv1.RegistryType_REGISTRY_TYPE_MALWARE_FIREWALL
)

// Field paths as clients spell them.
const (
	insertPath = "packageManagerConfigForInsert"
	configPath = insertPath + ".config."
)

// credentials are the credentials of a request: at most one kind. values has only that kind.
type credentials struct {
	kind   registry.Kind
	values *supplychainv1.PackageManagerConfigForInsert
}

// credentialsOf reads a request's credentials. An empty object counts as absent, because clients send whole structs.
// Errors never contain values.
func credentialsOf(given *supplychainv1.PackageManagerConfigForInsert) (credentials, error) {
	maven, pypi, artifact, npm := given.GetMaven(), given.GetPypi(), given.GetCodeArtifact(), given.GetNpm()
	var sent []credentials
	if proto.Size(maven) > 0 {
		sent = append(sent, credentials{registry.Maven, &supplychainv1.PackageManagerConfigForInsert{Maven: maven}})
	}
	if proto.Size(pypi) > 0 {
		sent = append(sent, credentials{registry.PyPI, &supplychainv1.PackageManagerConfigForInsert{Pypi: pypi}})
	}
	if proto.Size(artifact) > 0 {
		sent = append(sent, credentials{registry.CodeArtifact, &supplychainv1.PackageManagerConfigForInsert{CodeArtifact: artifact}})
	}
	if npm.GetToken() != "" || proto.Size(npm.GetBasicAuth()) > 0 {
		sent = append(sent, credentials{registry.NPM, &supplychainv1.PackageManagerConfigForInsert{Npm: npm}})
	}
	switch {
	case len(sent) == 0:
		return credentials{}, nil
	case len(sent) > 1:
		return credentials{}, apierr.InvalidArgument(insertPath, "%s takes one kind of credentials, got %d: %s", insertPath, len(sent), kindsOf(sent))
	}
	return sent[0], sent[0].complete()
}

// complete rejects an incomplete pair, and two ways to authenticate at once.
func (c credentials) complete() error {
	npm := c.values.GetNpm()
	switch c.kind {
	case registry.Maven:
		return completePair(insertPath+".maven", c.values.GetMaven())
	case registry.PyPI:
		return completePair(insertPath+".pypi", c.values.GetPypi())
	case registry.NPM:
		if proto.Size(npm.GetBasicAuth()) == 0 {
			return nil
		}
		if npm.GetToken() != "" {
			return apierr.InvalidArgument(insertPath+".npm", "%s.npm takes token or basicAuth, got both", insertPath)
		}
		return completePair(insertPath+".npm.basicAuth", npm.GetBasicAuth())
	}
	return nil
}

func completePair(path string, pair interface {
	GetUsername() string
	GetPassword() string
}) error {
	if pair.GetUsername() == "" {
		return apierr.InvalidArgument(path+".username", "%s.username must not be empty", path)
	}
	if pair.GetPassword() == "" {
		return apierr.InvalidArgument(path+".password", "%s.password must not be empty", path)
	}
	return nil
}

// check rejects invalid configurations. config is complete; kind is the kind of its new or stored credentials. It
// normalises the URL of a malware firewall.
func (s *PackageManagers) check(config *supplychainv1.PackageManagerConfig, kind registry.Kind) error {
	switch {
	case strings.TrimSpace(config.GetName()) == "":
		return apierr.InvalidArgument(configPath+"name", "%sname must have 1 to 255 characters, and not only spaces", configPath)
	case config.GetUrl() == "":
		return apierr.InvalidArgument(configPath+"url", "%surl is required", configPath)
	case config.GetRegistryType() == malwareFirewall:
		return checkFirewall(config, kind)
	}
	for _, checkURL := range []func(string) error{s.egress.CheckURL, registry.CheckURL} {
		if err := checkURL(config.GetUrl()); err != nil {
			return apierr.InvalidArgument(configPath+"url", "%surl %v", configPath, err)
		}
	}
	if err := checkAdditional(config); err != nil {
		return err
	}
	return checkCredentials(config, kind)
}

// checkFirewall applies the rules of facts 3.3 to a malware firewall. no_package_manager means none.
func checkFirewall(config *supplychainv1.PackageManagerConfig, kind registry.Kind) error {
	pattern, err := registry.HostPattern(config.GetUrl())
	switch {
	case err != nil:
		return apierr.InvalidArgument(configPath+"url", "%surl %v", configPath, err)
	case config.GetEcosystem() != "" && config.GetEcosystem() != registry.NoEcosystem:
		return apierr.InvalidArgument(configPath+"ecosystem", "%secosystem must be absent for %v, got %s", configPath, malwareFirewall, apierr.Quote(config.GetEcosystem()))
	case config.GetRequiresAuth():
		return apierr.InvalidArgument(configPath+"requiresAuth", "%srequiresAuth must be false for %v, which takes no credentials", configPath, malwareFirewall)
	case kind != registry.None:
		return apierr.InvalidArgument(insertPath+"."+string(kind), "%s.%s must be absent for %v, which takes no credentials", insertPath, kind, malwareFirewall)
	}
	config.Url, config.Ecosystem = pattern, ""
	return checkAdditional(config)
}

func checkAdditional(config *supplychainv1.PackageManagerConfig) error {
	additional := config.GetAdditionalConfig()
	if given := additional.GetMaven().GetRepositoryType(); given != 0 && config.GetEcosystem() != "maven" {
		return apierr.InvalidArgument(configPath+"additionalConfig.maven.repositoryType",
			"%sadditionalConfig.maven.repositoryType is only for the ecosystem maven, got %v for the ecosystem %q", configPath, given, config.GetEcosystem())
	}
	if given := additional.GetNpm(); given != nil && given.Scope != nil && config.GetEcosystem() != "npm" {
		return apierr.InvalidArgument(configPath+"additionalConfig.npm.scope",
			"%sadditionalConfig.npm.scope is only for the ecosystem npm, got %s for the ecosystem %q", configPath, apierr.Quote(given.GetScope()), config.GetEcosystem())
	}
	return nil
}

func checkCredentials(config *supplychainv1.PackageManagerConfig, kind registry.Kind) error {
	ecosystem := config.GetEcosystem()
	kinds := registry.Kinds(ecosystem)
	switch {
	case !config.GetRequiresAuth() && kind == registry.None:
		return nil
	case !config.GetRequiresAuth():
		return apierr.InvalidArgument(insertPath+"."+string(kind),
			"%s.%s must be absent when %srequiresAuth is false, as it is here", insertPath, kind, configPath)
	case len(kinds) == 0:
		return apierr.InvalidArgument(configPath+"ecosystem",
			"%secosystem %q takes no credentials; these ecosystems do: %s", configPath, ecosystem, registry.Supported)
	case kind == registry.None:
		return apierr.InvalidArgument(insertPath,
			"%s must contain the credentials %s or %s, because %srequiresAuth is true and the ecosystem is %s", insertPath, kinds[0], kinds[1], configPath, ecosystem)
	case !slices.Contains(kinds, kind):
		return apierr.InvalidArgument(insertPath+"."+string(kind),
			"the ecosystem %s takes the credentials %s or %s, got %s: send the right ones", ecosystem, kinds[0], kinds[1], kind)
	}
	return nil
}

func kindsOf(sent []credentials) string {
	words := make([]string, len(sent))
	for i, c := range sent {
		words[i] = string(c.kind)
	}
	return strings.Join(words, ", ")
}
