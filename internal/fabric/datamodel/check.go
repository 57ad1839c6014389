package datamodel

import (
	"slices"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire/message"
)

// checkOf is a posture check as routers judge by it, without its name. They take no version
// of an operating system if none is named, and the first entry for one, where the last
// counts here.
func checkOf(c *model.PostureCheck) message.DataCheck {
	check := message.DataCheck{ID: c.ID, Type: c.TypeID}
	switch c.TypeID {
	case "OS":
		check.Systems = &message.CheckSystems{}
		for _, system := range slices.Backward(c.OperatingSystems) {
			versions := system.Versions
			if len(versions) == 0 {
				versions = []string{">=0.0.0"}
			}
			check.Systems.List = append(check.Systems.List, message.CheckSystem{Type: system.Type, Versions: versions})
		}
	case "DOMAIN":
		check.Domains = &message.CheckDomains{Domains: c.Domains}
	case "MAC":
		check.MACs = &message.CheckMACs{Addresses: c.MACAddresses}
	case "MFA":
		check.Factor = &message.CheckFactor{Seconds: int64(c.TimeoutSeconds), OnWake: c.PromptOnWake, OnUnlock: c.PromptOnUnlock, Lenient: c.IgnoreLegacyEndpoints}
	case "PROCESS":
		program := message.CheckProgram{System: c.Process.OSType, Path: c.Process.Path, Hashes: c.Process.Hashes}
		if c.Process.SignerFingerprint != "" {
			program.Signers = []string{c.Process.SignerFingerprint}
		}
		check.Program = &program
	case "PROCESS_MULTI":
		check.Programs = &message.CheckPrograms{Semantic: c.Semantic}
		for _, p := range c.Processes {
			check.Programs.List = append(check.Programs.List, message.CheckProgram{System: p.OSType, Path: p.Path, Hashes: p.Hashes, Signers: p.SignerFingerprints})
		}
	}
	return check
}
