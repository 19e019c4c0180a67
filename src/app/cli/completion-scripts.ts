/** Each asks the program itself, so that a new version needs no new script. */
const bash = `# Completion of ichor for bash. To load it in every shell:
#   ichor completion bash > ~/.local/share/bash-completion/completions/ichor
_ichor() {
  local IFS=$'\\n' word
  local -a words=()
  # bash makes words of their own of the = in --output=json.
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD}"; do [ "$word" = = ] || words+=("$word"); done
  # Behind it, the value is still empty.
  [ "\${COMP_WORDS[COMP_CWORD]}" != = ] || words+=("")
  COMPREPLY=($("\${COMP_WORDS[0]}" __complete -- "\${words[@]}" 2>/dev/null | cut -f1))
}
complete -o default -F _ichor ichor
`

const zsh = `#compdef ichor
# Completion of ichor for zsh. To load it in every shell, into a folder of $fpath:
#   ichor completion zsh > "\${fpath[1]}/_ichor"
_ichor() {
  local line
  local -a found=()
  while IFS= read -r line; do
    [ -n "$line" ] && found+=("\${line//$'\\t'/:}")
  done < <("\${words[1]}" __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( \${#found} )); then _describe -t ichor ichor found; else _files; fi
}
if [ "\${funcstack[1]}" = _ichor ]; then _ichor "$@"; else compdef _ichor ichor; fi
`

const fish = `# Completion of ichor for fish. To load it in every shell:
#   ichor completion fish > ~/.config/fish/completions/ichor.fish
function __ichor_complete
    set -l words (commandline -opc)
    ichor __complete -- $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c ichor -f -a '(__ichor_complete)'
`

export const COMPLETION_SCRIPTS = { bash, zsh, fish } as const
