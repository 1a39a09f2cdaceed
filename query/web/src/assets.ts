// Amounts of several vaults, added up by asset: amounts of different assets are never added.
import type { Token, Vault } from "./types"

export interface OfAsset<Sums> {
  asset: Token
  vaults: Vault[]
  sums: Sums
}

/** Adds up the amounts of vaults by asset, in the order of the vaults. Vaults without amounts are left out. */
export function byAsset<Name extends string>(vaults: Vault[], amounts: (vault: Vault) => Record<Name, string> | null): OfAsset<Record<Name, string>>[] {
  const out: OfAsset<Record<Name, string>>[] = []
  for (const vault of vaults) {
    const has = amounts(vault)
    if (has === null) continue
    const known = out.find(({ asset }) => asset.address === vault.asset.address)
    if (known === undefined) {
      out.push({ asset: vault.asset, vaults: [vault], sums: { ...has } })
      continue
    }
    known.vaults.push(vault)
    for (const name of Object.keys(has) as Name[]) known.sums[name] = String(BigInt(known.sums[name]) + BigInt(has[name]))
  }
  return out
}

/** Whether all vaults hold the same asset, so that their amounts can be added. */
export const oneAsset = (vaults: Pick<Vault, "asset">[]) => new Set(vaults.map(({ asset }) => asset.address)).size <= 1
