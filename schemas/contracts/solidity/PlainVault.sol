// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC20, IERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC4626} from "@openzeppelin/contracts/token/ERC20/extensions/ERC4626.sol";

/// OpenZeppelin's ERC-4626 vault, unchanged.
contract PlainVault is ERC4626 {
    constructor(string memory name_, string memory symbol_, address asset_)
        ERC20(name_, symbol_)
        ERC4626(IERC20(asset_))
    {}
}
