package config

import (
	"slices"
	"strings"
)

// The roles of a node.
const (
	// RoleAPI answers requests.
	RoleAPI = "api"
	// RoleWorker runs background jobs. A node without it only adds jobs to the queue.
	RoleWorker = "worker"
	// RoleScanner runs managed scans.
	RoleScanner = "scanner"
)

var roles = []string{RoleAPI, RoleWorker, RoleScanner}

// roleNames are the configured roles.
func (c Config) roleNames() []string {
	names := strings.Split(c.Roles, ",")
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
	}
	return names
}

// Has reports whether the node has a role.
func (c Config) Has(role string) bool { return slices.Contains(c.roleNames(), role) }

func (c Config) validateRoles(p *problemList) {
	const want = "want one or more of api, worker and scanner, separated by commas: api serves requests, worker runs background jobs, scanner runs managed scans"
	if strings.Trim(c.Roles, ", ") == "" {
		p.add("roles", "names no role, so the node would do nothing; %s", want)
		return
	}
	for _, name := range c.roleNames() {
		switch {
		case name == "":
			p.add("roles", "got %q, which has an empty name between commas; %s", c.Roles, want)
		case !slices.Contains(roles, name):
			p.add("roles", "got %q, which is not a role; %s", name, want)
		}
	}
}
