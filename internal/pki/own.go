package pki

import "crypto/x509"

// Own are the certificates that a controller has for itself, by what they are for: its
// server, and as a member of a cluster its peers. Where there is none it is left out.
func Own(dir string) (map[string]*x509.Certificate, error) {
	own := map[string]*x509.Certificate{}
	return own, locked(dir, func(f folder) error {
		for what, name := range map[string]string{"server": serverFile, "peer": peerFile} {
			chain, err := f.readCertificates(name, maxPresented)
			if err != nil {
				return err
			}
			if len(chain) > 0 {
				own[what] = chain[0]
			}
		}
		return nil
	})
}
