// Compiles LogSource.sol into LogSource.bin with the pinned compiler of schemas/contracts (`npm ci` there first). No
// metadata is appended, so the same source always gives the same bytes.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const here = new URL(".", import.meta.url);
const solc = createRequire(new URL("../../../../schemas/contracts/package.json", here))("solc");

const output = JSON.parse(
  solc.compile(
    JSON.stringify({
      language: "Solidity",
      sources: { "LogSource.sol": { content: readFileSync(new URL("LogSource.sol", here), "utf8") } },
      settings: {
        evmVersion: "cancun",
        optimizer: { enabled: true, runs: 10000 },
        viaIR: true,
        metadata: { bytecodeHash: "none", appendCBOR: false },
        outputSelection: { "*": { "*": ["evm.bytecode.object"] } },
      },
    }),
  ),
);
for (const problem of output.errors ?? []) console.error(problem.formattedMessage);
if (output.errors?.length) process.exit(1);
writeFileSync(new URL("LogSource.bin", here), output.contracts["LogSource.sol"].LogSource.evm.bytecode.object + "\n");
