// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// The functions of an external ERC-20 token that the vault and the router use.
interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
    function approve(address spender, uint256 amount) external returns (bool);
    function decimals() external view returns (uint8);
}

/// A plain ERC-20 token, the base of the vault's share and of the mock asset.
abstract contract ERC20 {
    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    error InsufficientBalance(address holder, uint256 balance, uint256 wanted);
    error InsufficientAllowance(address holder, address spender, uint256 allowance, uint256 wanted);
    error ZeroAddress();

    string public name;
    string public symbol;
    uint8 public immutable decimals;
    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;

    constructor(string memory name_, string memory symbol_, uint8 decimals_) {
        name = name_;
        symbol = symbol_;
        decimals = decimals_;
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowance[msg.sender][spender] = amount;
        emit Approval(msg.sender, spender, amount);
        return true;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        _move(msg.sender, to, amount);
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        _spendAllowance(from, msg.sender, amount);
        _move(from, to, amount);
        return true;
    }

    /// The maximum allowance is infinite, and is not reduced.
    function _spendAllowance(address holder, address spender, uint256 amount) internal {
        uint256 allowed = allowance[holder][spender];
        if (allowed == type(uint256).max) return;
        if (allowed < amount) revert InsufficientAllowance(holder, spender, allowed, amount);
        allowance[holder][spender] = allowed - amount;
    }

    function _move(address from, address to, uint256 amount) internal {
        if (to == address(0)) revert ZeroAddress();
        _take(from, amount);
        balanceOf[to] += amount;
        emit Transfer(from, to, amount);
    }

    function _mint(address to, uint256 amount) internal {
        if (to == address(0)) revert ZeroAddress();
        totalSupply += amount;
        balanceOf[to] += amount;
        emit Transfer(address(0), to, amount);
    }

    function _burn(address from, uint256 amount) internal {
        _take(from, amount);
        totalSupply -= amount;
        emit Transfer(from, address(0), amount);
    }

    function _take(address from, uint256 amount) private {
        uint256 balance = balanceOf[from];
        if (balance < amount) revert InsufficientBalance(from, balance, amount);
        balanceOf[from] = balance - amount;
    }
}

/// Token calls that accept both behaviours of actual tokens: returning true, or returning nothing.
library TokenCalls {
    error TokenCallFailed(address token);

    function pull(IERC20 token, address from, uint256 amount) internal {
        _call(token, abi.encodeCall(IERC20.transferFrom, (from, address(this), amount)));
    }

    function pay(IERC20 token, address to, uint256 amount) internal {
        _call(token, abi.encodeCall(IERC20.transfer, (to, amount)));
    }

    function allow(IERC20 token, address spender, uint256 amount) internal {
        _call(token, abi.encodeCall(IERC20.approve, (spender, amount)));
    }

    function _call(IERC20 token, bytes memory input) private {
        (bool ok, bytes memory output) = address(token).call(input);
        if (!ok) {
            assembly ("memory-safe") {
                revert(add(output, 32), mload(output))
            }
        }
        if (output.length == 0 ? address(token).code.length == 0 : !abi.decode(output, (bool))) {
            revert TokenCallFailed(address(token));
        }
    }
}
