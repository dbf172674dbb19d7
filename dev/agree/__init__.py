"""How far the rules that raise flags agree with people, rewards and planted mistakes."""
