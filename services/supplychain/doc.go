// Package supplychain serves dependencies, package manager configurations and the malware firewall.
package supplychain
