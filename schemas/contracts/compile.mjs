// Compiles solidity/*.sol into abi/<Contract>.json and abi/<Contract>.bin. The compiler is pinned by
// package-lock.json, and no metadata is appended, so the same sources always produce the same bytes.
import { readFileSync, readdirSync, writeFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import solc from "solc";

const here = dirname(fileURLToPath(import.meta.url));
const contracts = {
  MockAsset: "MockAsset", ReferenceVault: "ReferenceVault", ReferenceDepositRouter: "ReferenceDepositRouter",
  PlainVault: "PlainVault", RedeemVault: "RedeemVault", LagoonVault: "LagoonVault", YoVault: "YoVault", YoGateway: "YoVault",
  VedaVault: "VedaVault", VedaTeller: "VedaVault", VedaAccountant: "VedaVault", VedaQueue: "VedaVault",
  MidasVault: "MidasVault", MidasFeed: "MidasVault", MidasDeposits: "MidasVault", MidasRedemptions: "MidasVault",
};

const sources = {};
for (const file of readdirSync(join(here, "solidity")).sort()) {
  sources[file] = { content: readFileSync(join(here, "solidity", file), "utf8") };
}

const input = {
  language: "Solidity",
  sources,
  settings: {
    evmVersion: "cancun",
    optimizer: { enabled: true, runs: 200 },
    viaIR: true,
    metadata: { bytecodeHash: "none", appendCBOR: false },
    outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } },
  },
};

// Imports of packages are read from node_modules.
const imported = (path) => ({ contents: readFileSync(join(here, "node_modules", path), "utf8") });
const output = JSON.parse(solc.compile(JSON.stringify(input), { import: imported }));
for (const problem of output.errors ?? []) console.error(problem.formattedMessage);
if (output.errors?.length) process.exit(1); // also on warnings: the reference compiles without any

mkdirSync(join(here, "abi"), { recursive: true });
for (const [name, file] of Object.entries(contracts)) {
  const { abi, evm } = output.contracts[`${file}.sol`][name];
  writeFileSync(join(here, "abi", `${name}.json`), JSON.stringify(abi, null, 2) + "\n");
  writeFileSync(join(here, "abi", `${name}.bin`), evm.bytecode.object + "\n");
}
